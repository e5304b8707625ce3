"""Payloads for tests, as text."""


def matmul(m: int, n: int, k: int, element: str = "f32") -> str:
    a, b, c = (f"tensor<{r}x{s}x{element}>" for r, s in ((m, k), (k, n), (m, n)))
    return f"""func.func @matmul(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : {element}
  %empty = tensor.empty() : {c}
  %start = linalg.fill ins(%zero : {element}) outs(%empty : {c}) -> {c}
  %product = linalg.matmul ins(%a, %b : {a}, {b}) outs(%start : {c}) -> {c}
  return %product : {c}
}}
"""


def batch_matmul(batch: int, m: int, n: int, k: int) -> str:
    a, b, c = (f"tensor<{batch}x{r}x{s}xf32>" for r, s in ((m, k), (k, n), (m, n)))
    return f"""func.func @attention_scores(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
  %product = linalg.batch_matmul ins(%a, %b : {a}, {b}) outs(%start : {c}) -> {c}
  return %product : {c}
}}
"""


def attention_scores(batch: int, queries: int, keys: int, width: int) -> str:
    q, k, s = (
        f"tensor<{batch}x{r}x{c}xf32>"
        for r, c in ((queries, width), (keys, width), (queries, keys))
    )
    return f"""func.func @scores(%q: {q}, %k: {k}) -> {s} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {s}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {s}) -> {s}
  %product = linalg.batch_matmul indexing_maps = [
      affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
      affine_map<(b, m, n, k) -> (b, m, n)>]
    ins(%q, %k : {q}, {k}) outs(%start : {s}) -> {s}
  return %product : {s}
}}
"""


def matmul_bias_relu(m: int, n: int, k: int) -> str:
    a, b, c = (f"tensor<{r}x{s}xf32>" for r, s in ((m, k), (k, n), (m, n)))
    return f"""#whole = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @dense(%a: {a}, %b: {b}, %bias: tensor<{n}xf32>) -> {c} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
  %product = linalg.matmul ins(%a, %b : {a}, {b}) outs(%start : {c}) -> {c}
  %result = linalg.generic {{indexing_maps = [#whole, #columns, #whole],
      iterator_types = ["parallel", "parallel"]}}
      ins(%product, %bias : {c}, tensor<{n}xf32>) outs(%empty : {c}) {{
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
    %positive = arith.maximumf %sum, %zero : f32
    linalg.yield %positive : f32
  }} -> {c}
  return %result : {c}
}}
"""


def softmax(rows: int, columns: int) -> str:
    kind = f"tensor<{rows}x{columns}xf32>"
    return f"""func.func @softmax(%a: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %result = linalg.softmax dimension(1) ins(%a : {kind}) outs(%empty : {kind}) -> {kind}
  return %result : {kind}
}}
"""


def row_sums(rows: int, columns: int) -> str:
    kind, result = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    return f"""func.func @row_sums(%a: {kind}) -> {result} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %sums = linalg.reduce ins(%a : {kind}) outs(%start : {result}) dimensions = [1]
    (%x: f32, %sum: f32) {{
      %next = arith.addf %x, %sum : f32
      linalg.yield %next : f32
    }}
  return %sums : {result}
}}
"""


def layer_norm(rows: int, columns: int) -> str:
    x, r, c = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>", f"tensor<{columns}xf32>"
    return f"""#whole = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @layer_norm(%x: {x}, %scale: {c}, %shift: {c}) -> {x} {{
  %zero = arith.constant 0.0 : f32
  %count = arith.constant {float(columns)} : f32
  %small = arith.constant 1.0e-5 : f32
  %per_row = tensor.empty() : {r}
  %empty = tensor.empty() : {x}
  %start = linalg.fill ins(%zero : f32) outs(%per_row : {r}) -> {r}
  %sum = linalg.generic {{indexing_maps = [#whole, #row],
      iterator_types = ["parallel", "reduction"]}} ins(%x : {x}) outs(%start : {r}) {{
  ^bb0(%a: f32, %out: f32):
    %next = arith.addf %a, %out : f32
    linalg.yield %next : f32
  }} -> {r}
  %squares = linalg.generic {{indexing_maps = [#whole, #row, #row],
      iterator_types = ["parallel", "reduction"]}} ins(%x, %sum : {x}, {r}) outs(%start : {r}) {{
  ^bb0(%a: f32, %s: f32, %out: f32):
    %mean = arith.divf %s, %count : f32
    %off = arith.subf %a, %mean : f32
    %square = arith.mulf %off, %off : f32
    %next = arith.addf %square, %out : f32
    linalg.yield %next : f32
  }} -> {r}
  %result = linalg.generic {{indexing_maps = [#whole, #row, #row, #column, #column, #whole],
      iterator_types = ["parallel", "parallel"]}}
      ins(%x, %sum, %squares, %scale, %shift : {x}, {r}, {r}, {c}, {c}) outs(%empty : {x}) {{
  ^bb0(%a: f32, %s: f32, %q: f32, %g: f32, %b: f32, %out: f32):
    %mean = arith.divf %s, %count : f32
    %variance = arith.divf %q, %count : f32
    %positive = arith.addf %variance, %small : f32
    %factor = math.rsqrt %positive : f32
    %off = arith.subf %a, %mean : f32
    %normal = arith.mulf %off, %factor : f32
    %scaled = arith.mulf %normal, %g : f32
    %shifted = arith.addf %scaled, %b : f32
    linalg.yield %shifted : f32
  }} -> {x}
  return %result : {x}
}}
"""


def chain(rows: int, columns: int) -> str:
    kind = f"tensor<{rows}x{columns}xf32>"
    return f"""func.func @chain(%a: {kind}, %b: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %1 = linalg.mul ins(%a, %b : {kind}, {kind}) outs(%empty : {kind}) -> {kind}
  %2 = linalg.tanh ins(%1 : {kind}) outs(%empty : {kind}) -> {kind}
  %3 = linalg.add ins(%2, %a : {kind}, {kind}) outs(%empty : {kind}) -> {kind}
  %4 = linalg.exp ins(%3 : {kind}) outs(%empty : {kind}) -> {kind}
  return %4 : {kind}
}}
"""

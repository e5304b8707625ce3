"""Usual operators as payloads, in MLIR text: for tests, benchmarks, and to begin with."""


def matmul(m: int, n: int, k: int, element: str = "f32") -> str:
    """Return a product of an ``m`` by ``k`` and a ``k`` by ``n`` matrix."""
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
    """Return ``batch`` such products."""
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
    """Return the products of queries and keys of some heads, both row by row."""
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
    """Return a product, a bias for each column, and ReLU."""
    return _matmul_bias(m, n, k, "", "    %positive = arith.maximumf %sum, %zero : f32\n")


def matmul_bias_gelu(m: int, n: int, k: int) -> str:
    """Return a product, a bias for each column, and GELU by its approximation with tanh."""
    constants = """  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %slope = arith.constant 0.7978845608 : f32
  %cubic = arith.constant 0.044715 : f32
"""
    activation = """    %square = arith.mulf %sum, %sum : f32
    %cube = arith.mulf %square, %sum : f32
    %small = arith.mulf %cube, %cubic : f32
    %both = arith.addf %sum, %small : f32
    %inner = arith.mulf %both, %slope : f32
    %tanh = math.tanh %inner : f32
    %plus = arith.addf %tanh, %one : f32
    %part = arith.mulf %sum, %half : f32
    %positive = arith.mulf %part, %plus : f32
"""
    return _matmul_bias(m, n, k, constants, activation)


def _matmul_bias(m: int, n: int, k: int, constants: str, activation: str) -> str:
    """Return a product, a bias for each column, and lines that make ``%positive`` of ``%sum``."""
    a, b, c = (f"tensor<{r}x{s}xf32>" for r, s in ((m, k), (k, n), (m, n)))
    return f"""#whole = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @dense(%a: {a}, %b: {b}, %bias: tensor<{n}xf32>) -> {c} {{
{constants}  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {c}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {c}) -> {c}
  %product = linalg.matmul ins(%a, %b : {a}, {b}) outs(%start : {c}) -> {c}
  %result = linalg.generic {{indexing_maps = [#whole, #columns, #whole],
      iterator_types = ["parallel", "parallel"]}}
      ins(%product, %bias : {c}, tensor<{n}xf32>) outs(%empty : {c}) {{
  ^bb0(%x: f32, %y: f32, %out: f32):
    %sum = arith.addf %x, %y : f32
{activation}    linalg.yield %positive : f32
  }} -> {c}
  return %result : {c}
}}
"""


def softmax(rows: int, columns: int) -> str:
    """Return softmax of each row."""
    kind = f"tensor<{rows}x{columns}xf32>"
    return f"""func.func @softmax(%a: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %result = linalg.softmax dimension(1) ins(%a : {kind}) outs(%empty : {kind}) -> {kind}
  return %result : {kind}
}}
"""


def row_sums(rows: int, columns: int) -> str:
    """Return the sum of each row."""
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
    """Return the layer normalisation of each row, with scale and shift."""
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
    """Return a chain of elementwise operations."""
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


def convolution(
    channels: int, filters: int, *, height: int = 9, width: int = 12, batch: int = 1
) -> str:
    """Return a convolution of a batch of images, 3 by 3, over all channels."""
    x, w, y = (
        f"tensor<{size}xf32>"
        for size in (
            f"{batch}x{height}x{width}x{channels}",
            f"3x3x{channels}x{filters}",
            f"{batch}x{height - 2}x{width - 2}x{filters}",
        )
    )
    return _window("convolution", "linalg.conv_2d_nhwc_hwcf", (x, w, y), 1)


def depthwise(
    channels: int, stride: int, *, height: int = 9, width: int = 13, batch: int = 2
) -> str:
    """Return a convolution of each channel by itself, 3 by 3."""
    rows, columns = (height - 3) // stride + 1, (width - 3) // stride + 1
    x, w, y = (
        f"tensor<{size}xf32>"
        for size in (
            f"{batch}x{height}x{width}x{channels}",
            f"3x3x{channels}",
            f"{batch}x{rows}x{columns}x{channels}",
        )
    )
    return _window("depthwise", "linalg.depthwise_conv_2d_nhwc_hwc", (x, w, y), stride)


def _window(name: str, operation: str, kinds: tuple[str, str, str], stride: int) -> str:
    x, w, y = kinds
    return f"""func.func @{name}(%x: {x}, %w: {w}) -> {y} {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {y}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {y}) -> {y}
  %result = {operation}
    {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}
    ins(%x, %w : {x}, {w}) outs(%start : {y}) -> {y}
  return %result : {y}
}}
"""


def mixed_matmul(element: str, total: str) -> str:
    """Return a product that is summed up in another type than that of its operands."""
    zero = "0" if total[0] == "i" else "0.0"
    a, b, c = f"tensor<9x20x{element}>", f"tensor<20x35x{element}>", f"tensor<9x35x{total}>"
    return f"""func.func @mixed(%a: {a}, %b: {b}) -> {c} {{
  %zero = arith.constant {zero} : {total}
  %empty = tensor.empty() : {c}
  %start = linalg.fill ins(%zero : {total}) outs(%empty : {c}) -> {c}
  %product = linalg.matmul ins(%a, %b : {a}, {b}) outs(%start : {c}) -> {c}
  return %product : {c}
}}
"""

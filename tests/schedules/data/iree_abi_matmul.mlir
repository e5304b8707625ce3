module {
  util.func public @matmul(%arg0: !hal.buffer_view, %arg1: !hal.buffer_view) -> !hal.buffer_view attributes {iree.abi.stub, iree.reflection = {iree.abi.declaration = "sync func @matmul(%input0: tensor<40x24xf32>, %input1: tensor<24x48xf32>) -> (%output0: tensor<40x48xf32>)"}} {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = hal.tensor.import %arg0 "input0" : !hal.buffer_view -> tensor<40x24xf32>
    %1 = hal.tensor.import %arg1 "input1" : !hal.buffer_view -> tensor<24x48xf32>
    %2 = tensor.empty() : tensor<40x48xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<40x48xf32>) -> tensor<40x48xf32>
    %4 = linalg.matmul ins(%0, %1 : tensor<40x24xf32>, tensor<24x48xf32>) outs(%3 : tensor<40x48xf32>) -> tensor<40x48xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<40x48xf32>) outs(%2 : tensor<40x48xf32>) {
    ^bb0(%in: f32, %out: f32):
      %7 = arith.cmpf ugt, %in, %cst : f32
      %8 = arith.select %7, %in, %cst : f32
      linalg.yield %8 : f32
    } -> tensor<40x48xf32>
    %6 = hal.tensor.export %5 "output0" : tensor<40x48xf32> -> !hal.buffer_view
    util.return %6 : !hal.buffer_view
  }
}
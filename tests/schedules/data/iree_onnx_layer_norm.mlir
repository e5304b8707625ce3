module {
  util.func public @layer_norm$async(%arg0: !hal.buffer_view, %arg1: !hal.fence, %arg2: !hal.fence) -> !hal.buffer_view attributes {inlining_policy = #util.inline.never, iree.abi.model = "coarse-fences", iree.abi.stub} {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant dense<[0.77104932, -5.797600e-02, 1.07441127, -1.00355959, -0.779557764, 1.26873159, -0.196083978, -0.358960658, 0.0775724202, -0.68949747, 1.33194137, -1.24916267, -1.505980e-01, 0.346952796, -0.104447067, -0.802287518, -0.868389189, 0.425394416, -1.0304805, 0.646242678, -1.52414834, -0.554983079, 0.0363060236, -1.25215197, 0.652010858, -0.018538814, -1.03607368, -1.51888824, -1.56558943, 0.0510339439, -1.15683007, -1.36487961, -0.231225938, 2.27750063, 0.277540356, 0.762918829, 0.212718353, 0.78298217, -1.34308863, -0.430511981]> : tensor<40xf32>
    %cst_1 = arith.constant dense<[0.26135084, -0.0179168154, -0.191993222, -0.66587609, -0.258383095, -0.774197817, -2.42183304, -1.19450843, 0.475652933, 1.557078, 1.81358016, 0.096751742, 0.893383622, 0.907977938, -0.692259192, -1.69793987, 0.0308873188, -1.76220095, -0.3199296, 0.608117104, -1.42006946, 0.0322953835, 1.24001813, 0.361512482, 0.522321701, 0.906740427, 1.73296309, 0.151423082, 1.22950089, -0.0641692132, -0.546168804, 0.314820975, -0.605812847, -0.573129237, -0.607740641, -2.29542422, 0.105499476, -1.26383531, -0.107269123, 1.44996881]> : tensor<40xf32>
    %cst_2 = arith.constant 4.000000e+01 : f32
    %cst_3 = arith.constant 9.99999974E-6 : f32
    %0 = hal.tensor.import wait(%arg1) => %arg0 : !hal.buffer_view -> tensor<6x40xf32>
    %1 = tensor.empty() : tensor<6x1xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<6x1xf32>) -> tensor<6x1xf32>
    %3 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], iterator_types = ["parallel", "reduction"]} ins(%0 : tensor<6x40xf32>) outs(%2 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<6x1xf32>) outs(%1 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst_2 : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %5 = tensor.empty() : tensor<6x40xf32>
    %collapsed = tensor.collapse_shape %4 [[0, 1]] : tensor<6x1xf32> into tensor<6xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed : tensor<6xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<6x40xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%0, %6 : tensor<6x40xf32>, tensor<6x40xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %19 = arith.subf %in, %in_5 : f32
      linalg.yield %19 : f32
    } -> tensor<6x40xf32>
    %8 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7, %7 : tensor<6x40xf32>, tensor<6x40xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %19 = arith.mulf %in, %in_5 : f32
      linalg.yield %19 : f32
    } -> tensor<6x40xf32>
    %9 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], iterator_types = ["parallel", "reduction"]} ins(%8 : tensor<6x40xf32>) outs(%2 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %out : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %10 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<6x1xf32>) outs(%1 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.divf %in, %cst_2 : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %11 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%10 : tensor<6x1xf32>) outs(%1 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = arith.addf %in, %cst_3 : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %12 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%11 : tensor<6x1xf32>) outs(%1 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %19 = math.rsqrt %in : f32
      linalg.yield %19 : f32
    } -> tensor<6x1xf32>
    %collapsed_4 = tensor.collapse_shape %12 [[0, 1]] : tensor<6x1xf32> into tensor<6xf32>
    %13 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%collapsed_4 : tensor<6xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<6x40xf32>
    %14 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%7, %13 : tensor<6x40xf32>, tensor<6x40xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %19 = arith.mulf %in, %in_5 : f32
      linalg.yield %19 : f32
    } -> tensor<6x40xf32>
    %15 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%14, %cst_0 : tensor<6x40xf32>, tensor<40xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %19 = arith.mulf %in, %in_5 : f32
      linalg.yield %19 : f32
    } -> tensor<6x40xf32>
    %16 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%15, %cst_1 : tensor<6x40xf32>, tensor<40xf32>) outs(%5 : tensor<6x40xf32>) {
    ^bb0(%in: f32, %in_5: f32, %out: f32):
      %19 = arith.addf %in, %in_5 : f32
      linalg.yield %19 : f32
    } -> tensor<6x40xf32>
    %17 = hal.tensor.barrier join(%16 : tensor<6x40xf32>) => %arg2 : !hal.fence
    %18 = hal.tensor.export %17 : tensor<6x40xf32> -> !hal.buffer_view
    util.return %18 : !hal.buffer_view
  }
  util.func public @layer_norm(%arg0: !hal.buffer_view) -> !hal.buffer_view attributes {iree.abi.stub} {
    %0 = util.null : !hal.fence
    %c-1_i32 = arith.constant -1 : i32
    %c0 = arith.constant 0 : index
    %device_0 = hal.devices.get %c0 : !hal.device
    %fence = hal.fence.create device(%device_0 : !hal.device) flags("None") : !hal.fence
    %1 = util.call @layer_norm$async(%arg0, %0, %fence) : (!hal.buffer_view, !hal.fence, !hal.fence) -> !hal.buffer_view
    %status = hal.fence.await until([%fence]) timeout_millis(%c-1_i32) flags("None") : i32
    util.return %1 : !hal.buffer_view
  }
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @tile_places(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly},
      !transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @tile_channels(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly},
      !transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @vectorize_windows(!transform.any_op {transform.consumed},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @lower(!transform.any_op {transform.consumed})

  // A convolution of each channel by itself, linalg.depthwise_conv_2d_nhwc_hwc.
  transform.named_sequence @depthwise_conv_2d(%module: !transform.any_op {transform.consumed}) {
    %places = transform.tune.knob<"reg_m"> options = [1, 2, 4, 6, 8, 12, 14]
      -> !transform.param<i64>
    %channels = transform.tune.knob<"reg_n"> options = [8, 16, 32, 48, 64]
      -> !transform.param<i64>
    %op = transform.structured.match ops{["linalg.depthwise_conv_2d_nhwc_hwc"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %tiled = transform.include @tile_places failures(propagate) (%op, %places, %channels, %module)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.any_op)
      -> !transform.any_op
    %tiles = transform.structured.match ops{["linalg.depthwise_conv_2d_nhwc_hwc"]} in %tiled
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %tiles : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %row, %loop = transform.structured.tile_using_for %one tile_sizes [0, 0, 0, 0, 1, 0]
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op)
      transform.yield
    }
    transform.include @cleanup failures(propagate) (%tiled) : (!transform.any_op) -> ()
    %windows = transform.structured.match ops{["linalg.depthwise_conv_2d_nhwc_hwc"]} in %tiled
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize_windows failures(propagate) (%windows, %tiled)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @lower failures(propagate) (%tiled) : (!transform.any_op) -> ()
    transform.yield
  }

  // A convolution over all channels, linalg.conv_2d_nhwc_hwcf.
  transform.named_sequence @conv_2d(%module: !transform.any_op {transform.consumed}) {
    %places = transform.tune.knob<"reg_m"> options = [1, 2, 4, 6, 8, 12, 14]
      -> !transform.param<i64>
    %channels = transform.tune.knob<"reg_n"> options = [8, 16, 32, 48, 64]
      -> !transform.param<i64>
    %depth = transform.tune.knob<"reg_k"> options = [1, 2, 4, 8] -> !transform.param<i64>
    %op = transform.structured.match ops{["linalg.conv_2d_nhwc_hwcf"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %tiled = transform.include @tile_channels failures(propagate) (%op, %places, %channels, %module)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.any_op)
      -> !transform.any_op
    %tiles = transform.structured.match ops{["linalg.conv_2d_nhwc_hwcf"]} in %tiled
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %tiles : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %row, %loops:2 = transform.structured.tile_using_for %one
        tile_sizes [0, 0, 0, 0, 1, 0, %depth]
        : (!transform.any_op, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%tiled)
      : (!transform.any_op) -> !transform.any_op
    %windows = transform.structured.match ops{["linalg.conv_2d_nhwc_hwcf"]} in %static
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize_windows failures(propagate) (%windows, %static)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @lower failures(propagate) (%static) : (!transform.any_op) -> ()
    transform.yield
  }
}

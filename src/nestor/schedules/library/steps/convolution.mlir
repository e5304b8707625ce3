// Convolutions without a copy of the input: rows of the result, in registers.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @vectorize(!transform.any_op {transform.consumed},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})

  // Tiles of one row of the result: some places of it and some channels; what follows is fused.
  // Some channels of all places come first, so that their part of the window stays in cache.
  transform.named_sequence @tile_channels(%op: !transform.any_op {transform.consumed},
      %places: !transform.param<i64> {transform.readonly},
      %channels: !transform.param<i64> {transform.readonly},
      %module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %tiled, %loops:4 = transform.structured.fuse %op tile_sizes [1, 1, %places, %channels]
      interchange [3, 0, 1, 2] {apply_cleanup}
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
          !transform.any_op)
    %static = transform.include @peel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.yield %static : !transform.any_op
  }

  // The same tiles in the order of memory, where the window is small.
  transform.named_sequence @tile_places(%op: !transform.any_op {transform.consumed},
      %places: !transform.param<i64> {transform.readonly},
      %channels: !transform.param<i64> {transform.readonly},
      %module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %tiled, %loops:4 = transform.structured.fuse %op tile_sizes [1, 1, %places, %channels]
      {apply_cleanup}
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op,
          !transform.any_op)
    %static = transform.include @peel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.yield %static : !transform.any_op
  }

  // Take each row of the window by itself, as a convolution of one dimension, in vectors.
  transform.named_sequence @vectorize_windows(%windows: !transform.any_op {transform.consumed},
      %module: !transform.any_op {transform.readonly}) {
    transform.foreach %windows : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %line = transform.structured.decompose %one : (!transform.any_op) -> !transform.any_op
      transform.annotate %line "in_lanes" : !transform.any_op
      transform.yield
    }
    transform.include @cleanup failures(propagate) (%module) : (!transform.any_op) -> ()
    %lines = transform.structured.match attributes{in_lanes} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize failures(propagate) (%lines, %module)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}

module attributes {transform.with_named_sequence} {
  transform.named_sequence private @decompose_rows(!transform.any_op {transform.readonly})
  transform.named_sequence private @divide_once(!transform.any_op {transform.readonly})
  transform.named_sequence private @tile_rows(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @vectorize_row_reductions(
      !transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @fuse_elementwise(!transform.any_op {transform.consumed})
      -> !transform.any_op
  transform.named_sequence private @lower(!transform.any_op {transform.consumed})

  // Reductions of rows, softmax and normalisations: passes over some rows at a time, in cache.
  transform.named_sequence @rows(%module: !transform.any_op {transform.consumed}) {
    transform.include @decompose_rows failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @divide_once failures(propagate) (%module) : (!transform.any_op) -> ()
    %fused = transform.include @fuse_elementwise failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %rows = transform.tune.knob<"rows"> options = [1, 2, 4, 8, 16] -> !transform.param<i64>
    %tiled = transform.include @tile_rows failures(propagate) (%fused, %rows)
      : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    %vectors = transform.include @vectorize_row_reductions failures(propagate) (%tiled)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower failures(propagate) (%vectors) : (!transform.any_op) -> ()
    transform.yield
  }
}

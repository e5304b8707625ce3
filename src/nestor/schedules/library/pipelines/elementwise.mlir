module attributes {transform.with_named_sequence} {
  transform.named_sequence private @fuse_elementwise(!transform.any_op {transform.consumed})
      -> !transform.any_op
  transform.named_sequence private @vectorize_flat(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @lower(!transform.any_op {transform.consumed})

  // A chain of elementwise operations, fused into one loop; vectors by MLIR or by LLVM.
  transform.named_sequence @elementwise(%module: !transform.any_op {transform.consumed}) {
    %fused = transform.include @fuse_elementwise failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %ready = transform.tune.alternatives<"vectors"> -> !transform.any_op {
      // LLVM's loop vectoriser finds the vectors.
      transform.yield %fused : !transform.any_op
    }, {
      %lanes = transform.tune.knob<"lanes"> options = [8, 16, 32, 64, 128] -> !transform.param<i64>
      %flat = transform.include @vectorize_flat failures(propagate) (%fused, %lanes)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
      transform.yield %flat : !transform.any_op
    }
    transform.include @lower failures(propagate) (%ready) : (!transform.any_op) -> ()
    transform.yield
  }
}

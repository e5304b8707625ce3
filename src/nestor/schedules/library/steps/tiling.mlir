// Cut operations into tiles.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})

  // Cache tiles of the two outer dimensions of an operation; what it reads is computed in the tile.
  transform.named_sequence @tile_and_fuse_2d(%op: !transform.any_op {transform.consumed},
      %m: !transform.param<i64> {transform.readonly}, %n: !transform.param<i64> {transform.readonly},
      %module: !transform.any_op {transform.readonly}) {
    transform.tune.alternatives<"parallel"> selected_region = 0 {
      // One after the other.
      %tiled, %loops:2 = transform.structured.fuse %op tile_sizes [%m, %n] {apply_cleanup}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
    }, {
      // Shared among threads.
      %tiled_all, %loop = transform.structured.fuse %op tile_sizes [%m, %n]
        {apply_cleanup, use_forall}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op)
    }
    transform.include @cleanup failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  // The same below a batch dimension, of which each iteration is one entry.
  transform.named_sequence @tile_and_fuse_batch(%op: !transform.any_op {transform.consumed},
      %m: !transform.param<i64> {transform.readonly}, %n: !transform.param<i64> {transform.readonly},
      %module: !transform.any_op {transform.readonly}) {
    transform.tune.alternatives<"parallel"> selected_region = 0 {
      // One after the other.
      %tiled, %loops:3 = transform.structured.fuse %op tile_sizes [1, %m, %n] {apply_cleanup}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    }, {
      // Shared among threads.
      %tiled_all, %loop = transform.structured.fuse %op tile_sizes [1, %m, %n]
        {apply_cleanup, use_forall}
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op)
    }
    transform.include @cleanup failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  // Rows of an operation; all that it reads is computed for the same rows, while they are in cache.
  transform.named_sequence @tile_and_fuse_rows(%op: !transform.any_op {transform.consumed},
      %rows: !transform.param<i64> {transform.readonly},
      %module: !transform.any_op {transform.readonly}) {
    transform.tune.alternatives<"parallel"> selected_region = 0 {
      // One after the other.
      %tiled, %loops = transform.structured.fuse %op tile_sizes [%rows] {apply_cleanup}
        : (!transform.any_op, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op)
    }, {
      // Shared among threads.
      %tiled_all, %loop = transform.structured.fuse %op tile_sizes [%rows]
        {apply_cleanup, use_forall}
        : (!transform.any_op, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op)
    }
    transform.include @cleanup failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  // Take the last, smaller iteration out of each loop, so that all sizes are fixed.
  transform.named_sequence @peel(%module: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %peeled = transform.apply_registered_pass "scf-for-loop-peeling" to %module
      : (!transform.any_op) -> !transform.any_op
    transform.include @cleanup failures(propagate) (%peeled) : (!transform.any_op) -> ()
    transform.yield %peeled : !transform.any_op
  }
}

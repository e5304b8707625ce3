// The inner part that all contractions share: a block of the reduction, packed operands, and a
// micro kernel whose accumulators stay in registers.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @vectorize_kernels(!transform.any_op {transform.consumed},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})

  // Copy both operands of a block to contiguous memory; sizes grow to multiples of the micro kernel.
  transform.named_sequence @pack(%block: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %padded, %pads, %copies = transform.structured.pad %block pad_to_multiple_of [%reg_m, %reg_n, 1] {
        padding_dimensions = [0, 1, 2],
        nofold_flags = [1, 1, 0], copy_back_op = "none"}
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %buffers, %new = transform.structured.bufferize_to_allocation %pads {memcpy_op = "linalg.copy"}
      : !transform.any_op
    transform.yield %padded : !transform.any_op
  }

  // Block the reduction of a matmul tile, pack, and make the micro kernel of one reduction step.
  transform.named_sequence @matmul_block(%module: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly},
      %tile_k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %tile = transform.structured.match ops{["linalg.matmul"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %block, %loop = transform.structured.tile_using_for %tile tile_sizes [0, 0, %tile_k]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %ready = transform.tune.alternatives<"remainder"> -> !transform.any_op {
      // Blocks at the edges are padded to the size of the others.
      transform.include @cleanup failures(propagate) (%module) : (!transform.any_op) -> ()
      transform.yield %module : !transform.any_op
    }, {
      // Blocks at the edges get code of their own.
      %peeled = transform.include @peel failures(propagate) (%module)
        : (!transform.any_op) -> !transform.any_op
      transform.yield %peeled : !transform.any_op
    }
    %blocks = transform.structured.match ops{["linalg.matmul"]} in %ready
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %blocks : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %packed = transform.include @pack failures(propagate) (%one, %reg_m, %reg_n)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
      %kernel, %loops:3 = transform.structured.tile_using_for %packed
        tile_sizes [%reg_m, %reg_n, 1]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield
    }
    transform.include @cleanup failures(propagate) (%ready) : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["linalg.matmul"]} in %ready
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize_kernels failures(propagate) (%kernels, %ready)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%ready) : (!transform.any_op) -> ()
    transform.yield %ready : !transform.any_op
  }

  // The same for one entry of a batch: linalg.batch_matmul whose batch has size 1.
  transform.named_sequence @batch_matmul_block(%module: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly},
      %tile_k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %tile = transform.structured.match ops{["linalg.batch_matmul"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %block, %loop = transform.structured.tile_using_for %tile tile_sizes [0, 0, 0, %tile_k]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %ready = transform.tune.alternatives<"remainder"> -> !transform.any_op {
      // Blocks at the edges are padded to the size of the others.
      transform.include @cleanup failures(propagate) (%module) : (!transform.any_op) -> ()
      transform.yield %module : !transform.any_op
    }, {
      // Blocks at the edges get code of their own.
      %peeled = transform.include @peel failures(propagate) (%module)
        : (!transform.any_op) -> !transform.any_op
      transform.yield %peeled : !transform.any_op
    }
    %blocks = transform.structured.match ops{["linalg.batch_matmul"]} in %ready
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %blocks : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %packed = transform.include @pack_batch failures(propagate) (%one, %reg_m, %reg_n)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> !transform.any_op
      %kernel, %loops:3 = transform.structured.tile_using_for %packed
        tile_sizes [0, %reg_m, %reg_n, 1]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield
    }
    transform.include @cleanup failures(propagate) (%ready) : (!transform.any_op) -> ()
    %kernels = transform.structured.match ops{["linalg.batch_matmul"]} in %ready
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize_kernels failures(propagate) (%kernels, %ready)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%ready) : (!transform.any_op) -> ()
    transform.yield %ready : !transform.any_op
  }

  // Pack the operands of one entry of a batch.
  transform.named_sequence @pack_batch(%block: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %padded, %pads, %copies = transform.structured.pad %block
      pad_to_multiple_of [%reg_m, %reg_n, 1] {padding_dimensions = [1, 2, 3],
        nofold_flags = [1, 1, 0], copy_back_op = "none"}
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %buffers, %new = transform.structured.bufferize_to_allocation %pads {memcpy_op = "linalg.copy"}
      : !transform.any_op
    transform.yield %padded : !transform.any_op
  }
}

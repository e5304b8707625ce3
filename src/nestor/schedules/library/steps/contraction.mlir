// The inner part that all contractions share: a block of the reduction, packed operands, and a
// micro kernel whose accumulators stay in registers. What is left of rows and of the reduction at the
// edges gets code of its own; columns are padded.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @vectorize_kernels(!transform.any_op {transform.consumed},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})
  transform.named_sequence private @unroll_reductions(!transform.any_op {transform.readonly})

  // Block the reduction of a matmul tile; pack, and make the micro kernel.
  transform.named_sequence @matmul_block(%module: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly},
      %tile_k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    // Edges of cache tiles come first: blocks of unknown size would be copied.
    %whole = transform.include @peel failures(propagate) (%module) : (!transform.any_op) -> !transform.any_op
    %found = transform.structured.match ops{["linalg.matmul"]} in %whole
      : (!transform.any_op) -> !transform.any_op
    // One at least: this is the place where a payload without a product is refused.
    %tiles = transform.split_handle %found {overflow_result = 0}
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %tiles : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %block, %loop = transform.structured.tile_using_for %one tile_sizes [0, 0, %tile_k]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      transform.yield
    }
    %ready = transform.include @peel failures(propagate) (%whole) : (!transform.any_op) -> !transform.any_op
    %blocks = transform.structured.match ops{["linalg.matmul"]} in %ready
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %blocks : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      transform.include @pack_operands failures(propagate) (%one, %reg_m, %reg_n)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
      transform.yield
    }
    %cut = transform.include @peel failures(propagate) (%ready) : (!transform.any_op) -> !transform.any_op
    // Padded values are written where they belong: not to a buffer first, and copied from there.
    %pads = transform.structured.match ops{["tensor.pad"]} in %cut
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %pads : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %written = transform.structured.rewrite_in_destination_passing_style %one
        : (!transform.any_op) -> !transform.any_op
      // Where nothing grows that is a copy, which goes away as linalg.generic: the next one is enough.
      %copies = transform.structured.match ops{["linalg.copy"]} in %written
        : (!transform.any_op) -> !transform.any_op
      %same = transform.structured.generalize %copies : (!transform.any_op) -> !transform.any_op
      transform.yield
    }
    %panels = transform.structured.match ops{["linalg.matmul"]} in %cut
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %panels : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %packed = transform.include @pack_panel failures(propagate) (%one)
        : (!transform.any_op) -> !transform.any_op
      transform.include @register_tiles failures(propagate) (%packed, %reg_m, %reg_n)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%cut) : (!transform.any_op) -> !transform.any_op
    %kernels = transform.structured.match ops{["linalg.matmul"]} in %static
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize_kernels failures(propagate) (%kernels, %static)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%static) : (!transform.any_op) -> ()
    transform.include @unroll_reductions failures(propagate) (%static) : (!transform.any_op) -> ()
    transform.yield %static : !transform.any_op
  }

  // Copy operands of a block to contiguous memory, or cut it into panels of columns.
  transform.named_sequence @pack_operands(%block: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly}) {
    %edge = transform.tune.knob<"edge"> options = [16, 32, 64] -> !transform.param<i64>
    transform.tune.alternatives<"packing"> {
      // Read operands where they are, unless columns must grow.
      %padded_0 = transform.include @pad_columns failures(propagate) (%block, %edge)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    }, {
      // Pack the right operand, which all rows of the block read.
      %padded_1 = transform.include @pack_right failures(propagate) (%block, %edge)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    }, {
      // Pack both operands.
      %left_2 = transform.include @pack_left failures(propagate) (%block)
        : (!transform.any_op) -> !transform.any_op
      %padded_2 = transform.include @pack_right failures(propagate) (%left_2, %edge)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
    }, {
      // Pack the left operand, and the right one panel by panel.
      %left_3 = transform.include @pack_left failures(propagate) (%block)
        : (!transform.any_op) -> !transform.any_op
      %panel_3, %panels_3 = transform.structured.tile_using_for %left_3 tile_sizes [0, %reg_n, 0]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    }, {
      // Pack the right operand panel by panel.
      %panel_4, %panels_4 = transform.structured.tile_using_for %block tile_sizes [0, %reg_n, 0]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    }, {
      // Panel by panel, but read operands where they are.
      %panel_5, %panels_5 = transform.structured.tile_using_for %block tile_sizes [0, %reg_n, 0]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    }, {
      // Pack all panels of the right operand first, then go along them row by row of micro kernels.
      %kernel_6, %loops_6:2 = transform.structured.tile_using_for %block
        tile_sizes [%reg_m, %reg_n, 0]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
      %padded_6, %pads_6, %copies_6 = transform.structured.pad %kernel_6
        {padding_dimensions = [1], nofold_flags = [0, 1, 0], copy_back_op = "none"}
        : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
      %right_6 = transform.get_producer_of_operand %padded_6[1]
        : (!transform.any_op) -> !transform.any_op
      %hoisted_6 = transform.structured.hoist_pad %right_6 by 2 loops
        : (!transform.any_op) -> !transform.any_op
    }
    transform.yield
  }

  // Copy what a panel of columns reads of the right operand; only the last panel grows.
  transform.named_sequence @pack_panel(%panel: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %edge = transform.tune.knob<"edge"> options = [16, 32, 64] -> !transform.param<i64>
    %packed = transform.tune.alternatives<"packing"> -> !transform.any_op {
      transform.yield %panel : !transform.any_op
    }, {
      transform.yield %panel : !transform.any_op
    }, {
      transform.yield %panel : !transform.any_op
    }, {
      %packed_3 = transform.include @pack_right failures(propagate) (%panel, %edge)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
      transform.yield %packed_3 : !transform.any_op
    }, {
      %packed_4 = transform.include @pack_right failures(propagate) (%panel, %edge)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
      transform.yield %packed_4 : !transform.any_op
    }, {
      %packed_5 = transform.include @pad_columns failures(propagate) (%panel, %edge)
        : (!transform.any_op, !transform.param<i64>) -> !transform.any_op
      transform.yield %packed_5 : !transform.any_op
    }, {
      transform.yield %panel : !transform.any_op
    }
    transform.yield %packed : !transform.any_op
  }

  // Copy the left operand to contiguous memory.
  transform.named_sequence @pack_left(%block: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %padded, %pads, %copies = transform.structured.pad %block
      {padding_dimensions = [0, 1, 2], nofold_flags = [1, 0, 0], copy_back_op = "none"}
      : (!transform.any_op) -> (!transform.any_op, !transform.any_op, !transform.any_op)
    %left = transform.get_producer_of_operand %padded[0] : (!transform.any_op) -> !transform.any_op
    %buffer, %new = transform.structured.bufferize_to_allocation %left
      {memcpy_op = "linalg.copy"} : !transform.any_op
    transform.yield %padded : !transform.any_op
  }

  // Copy the right operand to contiguous memory; columns at the edge grow.
  transform.named_sequence @pack_right(%block: !transform.any_op {transform.consumed},
      %edge: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %padded, %pads, %copies = transform.structured.pad %block
      pad_to_multiple_of [1, %edge, 1] {padding_dimensions = [0, 1, 2],
        nofold_flags = [0, 1, 0], copy_back_op = "none"}
      : (!transform.any_op, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    // The result is not copied here: bufferization knows better whether it must be.
    %right = transform.get_producer_of_operand %padded[1] : (!transform.any_op) -> !transform.any_op
    %buffer, %new = transform.structured.bufferize_to_allocation %right
      {memcpy_op = "linalg.copy"} : !transform.any_op
    transform.yield %padded : !transform.any_op
  }

  // Let columns at the edge grow.
  transform.named_sequence @pad_columns(%block: !transform.any_op {transform.consumed},
      %edge: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %padded, %pads, %copies = transform.structured.pad %block
      pad_to_multiple_of [1, %edge, 1] {padding_dimensions = [0, 1, 2],
        nofold_flags = [0, 0, 0], copy_back_op = "none"}
      : (!transform.any_op, !transform.param<i64>)
      -> (!transform.any_op, !transform.any_op, !transform.any_op)
    transform.yield %padded : !transform.any_op
  }

  // Cut a block into micro kernels of one reduction step.
  transform.named_sequence @register_tiles(%block: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly}) {
    transform.tune.alternatives<"inner"> {
      // Along the columns first: rows of the left operand stay in cache.
      %kernel_0, %loops_0:3 = transform.structured.tile_using_for %block
        tile_sizes [%reg_m, %reg_n, 1]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    }, {
      // Along the rows first: columns of the right operand stay in cache.
      %kernel_1, %loops_1:3 = transform.structured.tile_using_for %block
        tile_sizes [%reg_m, %reg_n, 1] interchange = [1, 0, 2]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    }
    transform.yield
  }

  // Block the reduction of one entry of a batch, linalg.batch_matmul whose batch has size 1; pack, and make the micro kernel.
  transform.named_sequence @batch_matmul_block(%module: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly},
      %tile_k: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %tile = transform.structured.match ops{["linalg.batch_matmul"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %block, %loop = transform.structured.tile_using_for %tile tile_sizes [0, 0, 0, %tile_k]
      : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
    %ready = transform.include @peel failures(propagate) (%module) : (!transform.any_op) -> !transform.any_op
    %blocks = transform.structured.match ops{["linalg.batch_matmul"]} in %ready
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %blocks : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %packed = transform.include @pack_batch_operands failures(propagate) (%one)
        : (!transform.any_op) -> !transform.any_op
      transform.include @batch_register_tiles failures(propagate) (%packed, %reg_m, %reg_n)
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>) -> ()
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%ready) : (!transform.any_op) -> !transform.any_op
    %kernels = transform.structured.match ops{["linalg.batch_matmul"]} in %static
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize_kernels failures(propagate) (%kernels, %static)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%static) : (!transform.any_op) -> ()
    transform.include @unroll_reductions failures(propagate) (%static) : (!transform.any_op) -> ()
    transform.yield %static : !transform.any_op
  }

  // Copy operands of a block to contiguous memory; columns at the edge grow.
  transform.named_sequence @pack_batch_operands(%block: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %edge = transform.tune.knob<"edge"> options = [16, 32, 64] -> !transform.param<i64>
    %packed = transform.tune.alternatives<"packing"> -> !transform.any_op {
      // Read operands where they are, unless columns must grow.
      %padded, %pads, %copies = transform.structured.pad %block
        pad_to_multiple_of [1, 1, %edge, 1] {padding_dimensions = [0, 1, 2, 3],
          nofold_flags = [0, 0, 0], copy_back_op = "none"}
        : (!transform.any_op, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
      transform.yield %padded : !transform.any_op
    }, {
      // Pack the right operand, which all rows of the block read.
      %padded, %pads, %copies = transform.structured.pad %block
        pad_to_multiple_of [1, 1, %edge, 1] {padding_dimensions = [0, 1, 2, 3],
          nofold_flags = [0, 1, 0], copy_back_op = "none"}
        : (!transform.any_op, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
      %buffers, %new = transform.structured.bufferize_to_allocation %pads
        {memcpy_op = "linalg.copy"} : !transform.any_op
      transform.yield %padded : !transform.any_op
    }, {
      // Pack both operands.
      %padded, %pads, %copies = transform.structured.pad %block
        pad_to_multiple_of [1, 1, %edge, 1] {padding_dimensions = [0, 1, 2, 3],
          nofold_flags = [1, 1, 0], copy_back_op = "none"}
        : (!transform.any_op, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
      %buffers, %new = transform.structured.bufferize_to_allocation %pads
        {memcpy_op = "linalg.copy"} : !transform.any_op
      transform.yield %padded : !transform.any_op
    }
    transform.yield %packed : !transform.any_op
  }

  // Cut a block into micro kernels of one reduction step.
  transform.named_sequence @batch_register_tiles(%block: !transform.any_op {transform.consumed},
      %reg_m: !transform.param<i64> {transform.readonly},
      %reg_n: !transform.param<i64> {transform.readonly}) {
    transform.tune.alternatives<"inner"> {
      // Along the columns first: rows of the left operand stay in cache.
      %kernel_0, %loops_0:3 = transform.structured.tile_using_for %block
        tile_sizes [0, %reg_m, %reg_n, 1]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    }, {
      // Along the rows first: columns of the right operand stay in cache.
      %kernel_1, %loops_1:3 = transform.structured.tile_using_for %block
        tile_sizes [0, %reg_m, %reg_n, 1] interchange = [0, 2, 1, 3]
        : (!transform.any_op, !transform.param<i64>, !transform.param<i64>)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
    }
    transform.yield
  }
}

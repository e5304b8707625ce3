// Operations along rows: the passes over one row follow each other while it is in cache.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
  transform.named_sequence private @vectorize(!transform.any_op {transform.consumed},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @hoist_accumulators(!transform.any_op {transform.readonly})
  transform.named_sequence private @tile_and_fuse_rows(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.any_op {transform.readonly})

  // Write softmax as the operations that it is made of, and named reductions as linalg.generic.
  transform.named_sequence @decompose_rows(%module: !transform.any_op {transform.readonly}) {
    %softmax = transform.structured.match ops{["linalg.softmax"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %softmax : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %parts = transform.structured.decompose_interface %one
        : (!transform.any_op) -> !transform.any_op
      transform.yield
    }
    %named = transform.structured.match ops{["linalg.reduce"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %named : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %generic = transform.structured.generalize %one : (!transform.any_op) -> !transform.any_op
      transform.yield
    }
    transform.yield
  }

  // Let a division by a value of the row become a multiplication by its reciprocal: a processor
  // divides a vector in the time of twenty multiplications. The last bit of a result may change.
  transform.named_sequence @divide_once(%module: !transform.any_op {transform.readonly}) {
    %divisions = transform.structured.match ops{["arith.divf"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %reciprocal = transform.param.constant #arith.fastmath<arcp> -> !transform.any_param
    transform.annotate %divisions "fastmath" = %reciprocal
      : !transform.any_op, !transform.any_param
    transform.yield
  }

  // Take some rows at a time through all operations that lead to the result.
  transform.named_sequence @tile_rows(%module: !transform.any_op {transform.consumed},
      %rows: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %return = transform.structured.match ops{["func.return"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %last = transform.get_producer_of_operand %return[0] : (!transform.any_op) -> !transform.any_op
    transform.include @tile_and_fuse_rows failures(propagate) (%last, %rows, %module)
      : (!transform.any_op, !transform.param<i64>, !transform.any_op) -> ()
    %functions = transform.structured.match ops{["func.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %functions : !transform.any_op {
    ^bb0(%function: !transform.any_op):
      transform.apply_patterns to %function {
        transform.apply_patterns.tensor.fold_tensor_empty
      } : !transform.any_op
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.yield %static : !transform.any_op
  }

  // Reduce rows in vectors of partial results, which are reduced at the end.
  transform.named_sequence @vectorize_row_reductions(
      %module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %reductions = transform.structured.match ops{["linalg.generic"]}
      attributes{iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<reduction>]}
      in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %reductions : !transform.any_op {
    ^bb0(%reduction: !transform.any_op):
      %part, %total = transform.tune.alternatives<"lanes"> -> !transform.any_op, !transform.any_op {
        %fill_16, %part_16, %total_16, %loop_16 =
          transform.structured.tile_reduction_using_for %reduction by tile_sizes = [0, 16]
          : (!transform.any_op)
          -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
        transform.yield %part_16, %total_16 : !transform.any_op, !transform.any_op
      }, {
        %fill_32, %part_32, %total_32, %loop_32 =
          transform.structured.tile_reduction_using_for %reduction by tile_sizes = [0, 32]
          : (!transform.any_op)
          -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
        transform.yield %part_32, %total_32 : !transform.any_op, !transform.any_op
      }, {
        %fill_64, %part_64, %total_64, %loop_64 =
          transform.structured.tile_reduction_using_for %reduction by tile_sizes = [0, 64]
          : (!transform.any_op)
          -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
        transform.yield %part_64, %total_64 : !transform.any_op, !transform.any_op
      }, {
        %fill_128, %part_128, %total_128, %loop_128 =
          transform.structured.tile_reduction_using_for %reduction by tile_sizes = [0, 128]
          : (!transform.any_op)
          -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
        transform.yield %part_128, %total_128 : !transform.any_op, !transform.any_op
      }
      transform.annotate %part "in_lanes" : !transform.any_op
      transform.annotate %total "in_lanes" : !transform.any_op
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %parts = transform.structured.match attributes{in_lanes} in %static
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize failures(propagate) (%parts, %static)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.include @hoist_accumulators failures(propagate) (%static) : (!transform.any_op) -> ()
    transform.yield %static : !transform.any_op
  }
}

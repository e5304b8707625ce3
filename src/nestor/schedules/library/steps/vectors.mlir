// From vectors of any rank to what the processor has.
module attributes {transform.with_named_sequence} {

  // Lower contractions to multiply-adds of rows, and reads and writes to one row each.
  transform.named_sequence @lower_vectors(%module: !transform.any_op {transform.readonly}) {
    %functions = transform.structured.match ops{["func.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %functions : !transform.any_op {
    ^bb0(%function: !transform.any_op):
      transform.apply_patterns to %function {
        transform.apply_patterns.memref.fold_memref_alias_ops
        transform.apply_patterns.canonicalization
      } : !transform.any_op
      transform.apply_cse to %function : !transform.any_op
      %loops = transform.structured.match interface{LoopLikeInterface} in %function
        : (!transform.any_op) -> !transform.any_op
      transform.apply_licm to %loops : !transform.any_op
      transform.apply_patterns to %function {
        transform.apply_patterns.vector.lower_contraction lowering_strategy = "outerproduct"
        transform.apply_patterns.vector.lower_outerproduct
        transform.apply_patterns.vector.lower_multi_reduction lowering_strategy = "innerparallel"
      } : !transform.any_op
      transform.apply_patterns to %function {
        transform.apply_patterns.vector.transfer_permutation_patterns
        transform.apply_patterns.vector.lower_transfer max_transfer_rank = 1
        transform.apply_patterns.vector.transfer_to_scf max_transfer_rank = 1 full_unroll = true
        transform.apply_patterns.canonicalization
      } : !transform.any_op
      transform.apply_patterns to %function {
        transform.apply_patterns.vector.lower_shape_cast
        transform.apply_patterns.vector.lower_transpose lowering_strategy = "shuffle_1d"
        transform.apply_patterns.vector.lower_broadcast
        transform.apply_patterns.canonicalization
      } : !transform.any_op
      transform.yield
    }
    transform.yield
  }
}

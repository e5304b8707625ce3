// From small tiles to vector operations, and values that stay in registers over a loop.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})

  // Vectorise tiles of static size, and fold slices into the reads and writes of vectors.
  transform.named_sequence @vectorize(%tiles: !transform.any_op {transform.consumed},
      %module: !transform.any_op {transform.readonly}) {
    transform.structured.vectorize %tiles : !transform.any_op
    transform.include @simplify_vectors failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  // Vectorise micro kernels of contractions, whatever the order of their operands' dimensions.
  transform.named_sequence @vectorize_kernels(%tiles: !transform.any_op {transform.consumed},
      %module: !transform.any_op {transform.readonly}) {
    transform.structured.vectorize %tiles {create_named_contraction} : !transform.any_op
    transform.include @simplify_vectors failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }

  // Fold slices and permutations into the reads and writes of vectors.
  transform.named_sequence @simplify_vectors(%module: !transform.any_op {transform.readonly}) {
    %functions = transform.structured.match ops{["func.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %functions : !transform.any_op {
    ^bb0(%function: !transform.any_op):
      transform.apply_patterns to %function {
        transform.apply_patterns.vector.reduction_to_contract
        transform.apply_patterns.vector.transfer_permutation_patterns
        transform.apply_patterns.vector.cast_away_vector_leading_one_dim
        transform.apply_patterns.tensor.fold_tensor_subset_ops_into_vector_transfers
        transform.apply_patterns.canonicalization
      } : !transform.any_op
      transform.apply_cse to %function : !transform.any_op
      transform.yield
    }
    transform.yield
  }

  // Keep what a loop reads and writes at one place in registers over all of its iterations.
  transform.named_sequence @hoist_accumulators(%module: !transform.any_op {transform.readonly}) {
    %loops = transform.structured.match ops{["scf.for"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.apply_licm to %loops : !transform.any_op
    transform.loop.hoist_loop_invariant_subsets %loops : !transform.any_op
    transform.yield
  }

  // Several steps of the reduction in an iteration: a processor that multiplies two vectors in a
  // cycle has little room for the instructions of the loop.
  transform.named_sequence @unroll_reductions(%module: !transform.any_op {transform.readonly}) {
    %products = transform.structured.match ops{["vector.contract"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %loops = transform.get_parent_op %products {allow_empty_results, deduplicate, op_name = "scf.for"}
      : (!transform.any_op) -> !transform.any_op
    transform.loop.unroll %loops {factor = 4} : !transform.any_op
    transform.yield
  }
}

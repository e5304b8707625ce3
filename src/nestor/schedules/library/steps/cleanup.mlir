// Simplify after a structural change, so that the next step sees static shapes and no dead code.
module attributes {transform.with_named_sequence} {

  // Fold slices, loops of one iteration and repeated subexpressions in all functions of a module.
  transform.named_sequence @cleanup(%module: !transform.any_op {transform.readonly}) {
    %functions = transform.structured.match ops{["func.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %functions : !transform.any_op {
    ^bb0(%function: !transform.any_op):
      transform.apply_patterns to %function {
        transform.apply_patterns.linalg.tiling_canonicalization
        transform.apply_patterns.scf.for_loop_canonicalization
        transform.apply_patterns.canonicalization
      } : !transform.any_op
      transform.apply_cse to %function : !transform.any_op
      transform.yield
    }
    transform.yield
  }
}

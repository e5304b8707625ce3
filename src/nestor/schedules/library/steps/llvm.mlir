// The end of every pipeline.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @bufferize(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @lower_vectors(!transform.any_op {transform.readonly})

  // Approximate exp, log, tanh and their like on vectors by polynomials.
  transform.named_sequence @approximate_math(%module: !transform.any_op {transform.readonly}) {
    %functions = transform.structured.match ops{["func.func"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %done = transform.apply_registered_pass "test-math-polynomial-approximation" to %functions
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }

  // Lower loops, memory and vectors to the LLVM dialect.
  transform.named_sequence @to_llvm(%module: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %loops = transform.apply_registered_pass "convert-linalg-to-loops" to %module
      : (!transform.any_op) -> !transform.any_op
    // Loops that threads share become OpenMP's; where there are none nothing changes.
    %shared = transform.apply_registered_pass "scf-forall-to-parallel" to %loops
      : (!transform.any_op) -> !transform.any_op
    %scoped = transform.apply_registered_pass "convert-scf-to-openmp" to %shared
      : (!transform.any_op) -> !transform.any_op
    // It wraps the body in a scope, which has one block only.
    %threads = transform.apply_registered_pass "canonicalize" to %scoped
      : (!transform.any_op) -> !transform.any_op
    %plain = transform.apply_registered_pass "lower-affine" to %threads
      : (!transform.any_op) -> !transform.any_op
    %rows = transform.apply_registered_pass "convert-vector-to-scf"
      with options = {"full-unroll" = true} to %plain : (!transform.any_op) -> !transform.any_op
    %branches = transform.apply_registered_pass "convert-scf-to-cf" to %rows
      : (!transform.any_op) -> !transform.any_op
    %strides = transform.apply_registered_pass "expand-strided-metadata" to %branches
      : (!transform.any_op) -> !transform.any_op
    %indices = transform.apply_registered_pass "lower-affine" to %strides
      : (!transform.any_op) -> !transform.any_op
    %vectors = transform.apply_registered_pass "convert-vector-to-llvm"
      with options = {"reassociate-fp-reductions" = true} to %indices
      : (!transform.any_op) -> !transform.any_op
    %memory = transform.apply_registered_pass "finalize-memref-to-llvm" to %vectors
      : (!transform.any_op) -> !transform.any_op
    %functions = transform.structured.match ops{["func.func"]} in %memory
      : (!transform.any_op) -> !transform.any_op
    %callable = transform.apply_registered_pass "llvm-request-c-wrappers" to %functions
      : (!transform.any_op) -> !transform.any_op
    %rest = transform.apply_registered_pass "convert-to-llvm" to %memory
      : (!transform.any_op) -> !transform.any_op
    %simple = transform.apply_registered_pass "canonicalize" to %rest
      : (!transform.any_op) -> !transform.any_op
    %done = transform.apply_registered_pass "reconcile-unrealized-casts" to %simple
      : (!transform.any_op) -> !transform.any_op
    transform.yield %done : !transform.any_op
  }

  // From tensors, after all that is particular to an operator, to the LLVM dialect.
  transform.named_sequence @lower(%module: !transform.any_op {transform.consumed}) {
    %memory = transform.include @bufferize failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    transform.include @lower_vectors failures(propagate) (%memory) : (!transform.any_op) -> ()
    transform.include @approximate_math failures(propagate) (%memory) : (!transform.any_op) -> ()
    %llvm = transform.include @to_llvm failures(propagate) (%memory)
      : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}

// From tensors to memory.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
  transform.named_sequence private @vectorize_copies(!transform.any_op {transform.consumed})
      -> !transform.any_op

  // Place all tensors in memory: results are arguments of the caller, temporaries live outside loops.
  transform.named_sequence @bufferize(%module: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %empty = transform.apply_registered_pass "eliminate-empty-tensors" to %module
      : (!transform.any_op) -> !transform.any_op
    %buffers = transform.bufferization.one_shot_bufferize layout{IdentityLayoutMap} %empty
      {bufferize_function_boundaries = true, allow_return_allocs_from_loops = true,
       memcpy_op = "linalg.copy"} : (!transform.any_op) -> !transform.any_op
    transform.include @cleanup failures(propagate) (%buffers) : (!transform.any_op) -> ()
    transform.include @cleanup failures(propagate) (%buffers) : (!transform.any_op) -> ()
    %results = transform.apply_registered_pass "buffer-results-to-out-params"
      with options = {"hoist-static-allocs" = true, "modify-public-functions" = true} to %buffers
      : (!transform.any_op) -> !transform.any_op
    %functions = transform.structured.match ops{["func.func"]} in %results
      : (!transform.any_op) -> !transform.any_op
    transform.bufferization.buffer_loop_hoisting %functions : !transform.any_op
    %freed = transform.apply_registered_pass "buffer-deallocation-pipeline" to %results
      : (!transform.any_op) -> !transform.any_op
    transform.include @cleanup failures(propagate) (%freed) : (!transform.any_op) -> ()
    %copied = transform.include @vectorize_copies failures(propagate) (%freed)
      : (!transform.any_op) -> !transform.any_op
    // Buffers begin at a line of the cache.
    %buffers_left = transform.structured.match ops{["memref.alloc"]} in %copied
      : (!transform.any_op) -> !transform.any_op
    %line = transform.param.constant 64 : i64 -> !transform.param<i64>
    transform.annotate %buffers_left "alignment" = %line : !transform.any_op, !transform.param<i64>
    transform.yield %copied : !transform.any_op
  }
}

// Bring payloads of several importers into one form.
module attributes {transform.with_named_sequence} {

  // Turn named elementwise operations into linalg.generic and fuse chains of them into one each.
  transform.named_sequence @fuse_elementwise(%module: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %named = transform.structured.match
      ops{["linalg.add", "linalg.sub", "linalg.mul", "linalg.div", "linalg.max", "linalg.min",
           "linalg.exp", "linalg.log", "linalg.tanh", "linalg.erf", "linalg.sqrt", "linalg.rsqrt",
           "linalg.negf", "linalg.abs", "linalg.square", "linalg.reciprocal", "linalg.broadcast",
           "linalg.map", "linalg.elementwise", "linalg.select", "linalg.powf", "linalg.ceil",
           "linalg.floor", "linalg.round"]}
      in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %named : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %generic = transform.structured.generalize %one : (!transform.any_op) -> !transform.any_op
      transform.yield
    }
    %fused = transform.apply_registered_pass "linalg-fuse-elementwise-ops" to %module
      : (!transform.any_op) -> !transform.any_op
    transform.include @cleanup failures(propagate) (%fused) : (!transform.any_op) -> ()
    transform.yield %fused : !transform.any_op
  }
  transform.named_sequence private @cleanup(!transform.any_op {transform.readonly})
}

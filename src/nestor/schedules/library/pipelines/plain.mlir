module attributes {transform.with_named_sequence} {
  transform.named_sequence private @decompose_rows(!transform.any_op {transform.readonly})
  transform.named_sequence private @lower(!transform.any_op {transform.consumed})

  // Any payload, without tiling and vectors: what every other pipeline must compute as well.
  transform.named_sequence @plain(%module: !transform.any_op {transform.consumed}) {
    transform.include @decompose_rows failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.include @lower failures(propagate) (%module) : (!transform.any_op) -> ()
    transform.yield
  }
}

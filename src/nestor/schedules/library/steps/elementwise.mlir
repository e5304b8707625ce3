// Operations that compute each element of the result by itself.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @vectorize(!transform.any_op {transform.consumed},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op

  // Take all elements as one long row, and some of them at a time in vectors.
  transform.named_sequence @vectorize_flat(%module: !transform.any_op {transform.consumed},
      %lanes: !transform.param<i64> {transform.readonly}) -> !transform.any_op {
    %ops = transform.structured.match ops{["linalg.generic"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %ops : !transform.any_op {
    ^bb0(%op: !transform.any_op):
      %flat = transform.structured.flatten_elementwise %op
        : (!transform.any_op) -> !transform.any_op
      %tile, %loop = transform.structured.tile_using_for %flat tile_sizes [%lanes]
        : (!transform.any_op, !transform.param<i64>) -> (!transform.any_op, !transform.any_op)
      transform.annotate %tile "in_lanes" : !transform.any_op
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %tiles = transform.structured.match attributes{in_lanes} in %static
      : (!transform.any_op) -> !transform.any_op
    transform.include @vectorize failures(propagate) (%tiles, %static)
      : (!transform.any_op, !transform.any_op) -> ()
    transform.yield %static : !transform.any_op
  }
}

// Copies in memory, such as those that pack operands, as loops of vectors.
module attributes {transform.with_named_sequence} {
  transform.named_sequence private @peel(!transform.any_op {transform.consumed}) -> !transform.any_op

  // Copy in vectors of 64 elements; what is left of a row is copied element by element.
  transform.named_sequence @vectorize_copies(%module: !transform.any_op {transform.consumed})
      -> !transform.any_op {
    %copies = transform.structured.match ops{["linalg.copy"]} in %module
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %copies : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %generic = transform.structured.generalize %one : (!transform.any_op) -> !transform.any_op
      transform.annotate %generic "copied" : !transform.any_op
      transform.yield
    }
    %copies_1 = transform.structured.match ops{["linalg.generic"]}
      attributes{copied, iterator_types = [#linalg.iterator_type<parallel>]}
      in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %copies_1 : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %row, %loop = transform.structured.tile_using_for %one tile_sizes [64]
        : (!transform.any_op)
        -> (!transform.any_op, !transform.any_op)
      transform.annotate %row "copied_row" : !transform.any_op
      transform.yield
    }
    %copies_2 = transform.structured.match ops{["linalg.generic"]}
      attributes{copied, iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]}
      in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %copies_2 : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %row, %loops:2 = transform.structured.tile_using_for %one tile_sizes [1, 64]
        : (!transform.any_op)
        -> (!transform.any_op, !transform.any_op, !transform.any_op)
      transform.annotate %row "copied_row" : !transform.any_op
      transform.yield
    }
    %copies_3 = transform.structured.match ops{["linalg.generic"]}
      attributes{copied, iterator_types = [#linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>, #linalg.iterator_type<parallel>]}
      in %module : (!transform.any_op) -> !transform.any_op
    transform.foreach %copies_3 : !transform.any_op {
    ^bb0(%one: !transform.any_op):
      %row, %loops:3 = transform.structured.tile_using_for %one tile_sizes [1, 1, 64]
        : (!transform.any_op)
        -> (!transform.any_op, !transform.any_op, !transform.any_op, !transform.any_op)
      transform.annotate %row "copied_row" : !transform.any_op
      transform.yield
    }
    %static = transform.include @peel failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %rows = transform.structured.match attributes{copied_row} in %static
      : (!transform.any_op) -> !transform.any_op
    transform.foreach %rows : !transform.any_op {
    ^bb0(%row: !transform.any_op):
      transform.include @vectorize_row failures(suppress) (%row) : (!transform.any_op) -> ()
      transform.yield
    }
    transform.yield %static : !transform.any_op
  }

  // Copy a row of fixed length as one vector.
  transform.named_sequence @vectorize_row(%row: !transform.any_op {transform.consumed}) {
    transform.structured.vectorize %row : !transform.any_op
    transform.yield
  }
}

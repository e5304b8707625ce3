module attributes {transform.with_named_sequence} {
  transform.named_sequence private @tile_and_fuse_2d(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly},
      !transform.any_op {transform.readonly})
  transform.named_sequence private @matmul_block(!transform.any_op {transform.consumed},
      !transform.param<i64> {transform.readonly}, !transform.param<i64> {transform.readonly},
      !transform.param<i64> {transform.readonly}) -> !transform.any_op
  transform.named_sequence private @fuse_elementwise(!transform.any_op {transform.consumed}) -> !transform.any_op
  transform.named_sequence private @lower(!transform.any_op {transform.consumed})

  // A product of two matrices, linalg.matmul.
  transform.named_sequence @matmul(%module: !transform.any_op {transform.consumed}) {
    %op = transform.structured.match ops{["linalg.matmul"]} in %module
      : (!transform.any_op) -> !transform.any_op
    %tiled = transform.include @matmul_tiles failures(propagate) (%op, %module)
      : (!transform.any_op, !transform.any_op) -> !transform.any_op
    transform.include @lower failures(propagate) (%tiled) : (!transform.any_op) -> ()
    transform.yield
  }

  // A product of two matrices whose result goes through elementwise operations: bias, ReLU, GELU.
  transform.named_sequence @matmul_elementwise(%module: !transform.any_op {transform.consumed}) {
    %fused = transform.include @fuse_elementwise failures(propagate) (%module)
      : (!transform.any_op) -> !transform.any_op
    %return = transform.structured.match ops{["func.return"]} in %fused
      : (!transform.any_op) -> !transform.any_op
    %last = transform.get_producer_of_operand %return[0] : (!transform.any_op) -> !transform.any_op
    %tiled = transform.include @matmul_tiles failures(propagate) (%last, %fused)
      : (!transform.any_op, !transform.any_op) -> !transform.any_op
    transform.include @lower failures(propagate) (%tiled) : (!transform.any_op) -> ()
    transform.yield
  }

  // Cache tiles, blocks of the reduction and register tiles, with the sizes as decisions.
  transform.named_sequence @matmul_tiles(%op: !transform.any_op {transform.consumed},
      %module: !transform.any_op {transform.consumed}) -> !transform.any_op {
    %tile_m = transform.tune.knob<"tile_m">
      options = [16, 32, 64, 96, 128, 192, 256, 320, 384, 512, 768, 1024, 2048, 4096]
      -> !transform.param<i64>
    %tile_n = transform.tune.knob<"tile_n">
      options = [16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096]
      -> !transform.param<i64>
    %tile_k = transform.tune.knob<"tile_k">
      options = [32, 64, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1536, 2048]
      -> !transform.param<i64>
    %reg_m = transform.tune.knob<"reg_m"> options = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14]
      -> !transform.param<i64>
    %reg_n = transform.tune.knob<"reg_n"> options = [8, 16, 32, 64, 128] -> !transform.param<i64>
    transform.include @tile_and_fuse_2d failures(propagate) (%op, %tile_m, %tile_n, %module)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.any_op) -> ()
    %done = transform.include @matmul_block failures(propagate) (%module, %reg_m, %reg_n, %tile_k)
      : (!transform.any_op, !transform.param<i64>, !transform.param<i64>, !transform.param<i64>)
      -> !transform.any_op
    transform.yield %done : !transform.any_op
  }
}

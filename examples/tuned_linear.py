"""A kernel that Nestor made of linalg, under an operator of PyTorch.

    python examples/tuned_linear.py [SCHEDULE]

SCHEDULE is what ``nestor schedule tune`` wrote for the payload below; without one, decisions are
guessed. The operator has a gradient: that of PyTorch's own operators.
"""

import sys
from pathlib import Path

import torch

from nestor import schedules

ROWS, INPUTS, OUTPUTS = 64, 256, 128

PAYLOAD = f"""#whole = affine_map<(d0, d1) -> (d0, d1)>
#columns = affine_map<(d0, d1) -> (d1)>
func.func @linear_relu(%x: tensor<{ROWS}x{INPUTS}xf32>, %w: tensor<{INPUTS}x{OUTPUTS}xf32>,
    %bias: tensor<{OUTPUTS}xf32>) -> tensor<{ROWS}x{OUTPUTS}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{ROWS}x{OUTPUTS}xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<{ROWS}x{OUTPUTS}xf32>)
    -> tensor<{ROWS}x{OUTPUTS}xf32>
  %product = linalg.matmul ins(%x, %w : tensor<{ROWS}x{INPUTS}xf32>, tensor<{INPUTS}x{OUTPUTS}xf32>)
    outs(%start : tensor<{ROWS}x{OUTPUTS}xf32>) -> tensor<{ROWS}x{OUTPUTS}xf32>
  %result = linalg.generic {{indexing_maps = [#whole, #columns, #whole],
      iterator_types = ["parallel", "parallel"]}}
      ins(%product, %bias : tensor<{ROWS}x{OUTPUTS}xf32>, tensor<{OUTPUTS}xf32>)
      outs(%empty : tensor<{ROWS}x{OUTPUTS}xf32>) {{
  ^bb0(%p: f32, %b: f32, %out: f32):
    %sum = arith.addf %p, %b : f32
    %positive = arith.maximumf %sum, %zero : f32
    linalg.yield %positive : f32
  }} -> tensor<{ROWS}x{OUTPUTS}xf32>
  return %result : tensor<{ROWS}x{OUTPUTS}xf32>
}}
"""


def main(words: list[str]) -> float:
    """Run the operator beside PyTorch's, and return by how much they differ at most."""
    kernel = schedules.compile(PAYLOAD, Path(words[0]) if words else None)

    @torch.library.custom_op("nestor::linear_relu", mutates_args=())
    def linear_relu(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(kernel(x.numpy(), w.numpy(), bias.numpy()))

    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, w, result = ctx.saved_tensors
        grad = grad * (result > 0)
        return grad @ w.T, x.T @ grad, grad.sum(0)

    linear_relu.register_autograd(
        backward,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs[:2], output),
    )
    torch.manual_seed(0)
    x, w, bias = torch.randn(ROWS, INPUTS), torch.randn(INPUTS, OUTPUTS), torch.randn(OUTPUTS)
    own = [t.clone().requires_grad_() for t in (x, w, bias)]
    theirs = [t.clone().requires_grad_() for t in (x, w, bias)]
    result = linear_relu(*own)
    expected = torch.relu(theirs[0] @ theirs[1] + theirs[2])
    result.sum().backward()
    expected.sum().backward()
    pairs = [(result, expected), *((a.grad, b.grad) for a, b in zip(own, theirs, strict=True))]
    return max(float((a - b).detach().abs().max()) for a, b in pairs)


if __name__ == "__main__":
    print(f"largest difference from PyTorch: {main(sys.argv[1:]):.1e}")

"""The payloads of the benchmarks of schedules: what is learned from, and what is held out."""

from collections.abc import Callable
from typing import Final

import numpy as np

from nestor.schedules.payload import operators
from nestor.schedules.payload.reading import Payload, read_payload
from nestor.schedules.tools import Tools

Shape = tuple[int, ...]
Shapes = dict[str, list[Shape]]
"""Shapes by operator, a function of ``nestor.schedules.payload.operators``."""

_SQUARE: Final = (256, 384, 512, 768, 1024, 1536, 2048)
_OTHER: Final[tuple[Shape, ...]] = (
    (2048, 64, 512), (64, 2048, 512), (4096, 32, 256), (32, 4096, 256), (1000, 1000, 1000),
    (257, 513, 129), (768, 3072, 768), (3072, 768, 768), (128, 768, 3072), (100, 300, 700),
    (31, 1001, 499), (1, 1024, 1024), (1536, 96, 2048),
)  # fmt: skip
KERNELS: Final[Shapes] = {
    "matmul": [*((n, n, n) for n in _SQUARE), *_OTHER],
    "matmul_bias_relu": [(512, 512, 512), (128, 3072, 768), (1000, 1000, 1000), (257, 513, 129)],
    "matmul_bias_gelu": [(512, 512, 512), (128, 3072, 768), (1000, 1000, 1000), (257, 513, 129)],
    "batch_matmul": [(12, 128, 128, 64), (96, 64, 64, 64), (8, 512, 64, 512), (16, 100, 300, 50)],
    "softmax": [(128, 1024), (4096, 128), (64, 10000), (1000, 1000)],
    "layer_norm": [(128, 768), (2048, 1024), (64, 4096), (1000, 1000)],
    "depthwise": [(64, 1), (256, 1), (96, 2), (33, 1)],
    "convolution": [(64, 64), (128, 128), (32, 96), (3, 64)],
}
"""What is compared with libraries. The policy learns from none of them."""

TRAINING: Final[Shapes] = {
    "matmul": [
        (320, 320, 320), (448, 448, 448), (640, 640, 640), (896, 896, 896), (1280, 1280, 640),
        (64, 768, 768), (768, 64, 768), (192, 1024, 256), (1024, 192, 384), (250, 250, 250),
        (511, 129, 300), (77, 999, 400), (8, 2048, 512), (1, 2048, 512), (2000, 48, 300),
        (600, 700, 800), (160, 160, 160), (720, 720, 720), (1600, 400, 400), (400, 1600, 400),
        (400, 400, 1600), (40, 1200, 900), (1200, 40, 900), (1, 900, 1100), (1, 3000, 300),
        (4, 700, 700), (16, 1500, 333), (345, 678, 123), (123, 345, 678), (900, 90, 90),
        (90, 900, 90), (56, 56, 2000), (1000, 30, 1000), (30, 1000, 1000), (999, 333, 111),
        (1400, 1100, 700), (80, 1024, 512), (40, 4096, 256), (100, 2000, 600), (1280, 1280, 1280),
        (1800, 1800, 1800), (1024, 2560, 1024), (2304, 640, 640), (640, 2560, 640),
        (96, 2304, 1792), (160, 640, 2560), (80, 1600, 640), (3600, 40, 320), (800, 800, 800),
    ],
    "matmul_bias_relu": [
        (384, 384, 384), (96, 1536, 384), (500, 300, 200), (130, 260, 520), (640, 640, 160),
        (50, 1000, 800), (800, 100, 400), (222, 444, 333), (1024, 128, 512), (16, 2000, 256),
        (48, 1024, 384), (96, 4096, 256), (32, 2048, 768),
    ],
    "batch_matmul": [
        (8, 96, 96, 96), (24, 48, 80, 32), (4, 256, 64, 256), (10, 70, 110, 90),
        (32, 32, 32, 64), (2, 300, 300, 64), (12, 160, 40, 160), (6, 50, 500, 48),
        (10, 64, 256, 48), (6, 128, 512, 64),
    ],
    "softmax": [(256, 512), (1000, 200), (32, 4000), (100, 1000), (3000, 100), (20, 9000)],
    "layer_norm": [(256, 512), (1000, 300), (32, 3000), (100, 1000), (2500, 200), (20, 7000)],
    "chain": [(300, 400), (64, 5000), (2000, 250)],
    "depthwise": [(32, 1), (128, 1), (64, 2), (40, 1), (160, 1), (24, 2), (300, 1), (112, 2)],
    "convolution": [
        (32, 32), (64, 128), (16, 48), (24, 24), (96, 32), (40, 72), (8, 120), (72, 20),
    ],
}  # fmt: skip
"""What the policy learns from."""

HELD_OUT: Final[Shapes] = {
    "matmul": [
        (288, 288, 288), (576, 576, 576), (960, 960, 960), (1152, 768, 512), (48, 1536, 512),
        (1536, 48, 512), (333, 777, 222), (1, 1500, 700), (900, 100, 1200), (200, 2000, 100),
    ],
    "matmul_bias_relu": [(448, 448, 448), (64, 2048, 512), (600, 200, 300), (125, 375, 625)],
    "matmul_bias_gelu": [(448, 448, 448), (64, 2048, 512), (600, 200, 300)],
    "batch_matmul": [(16, 80, 80, 64), (6, 200, 120, 90), (4, 384, 64, 384)],
    "attention_scores": [(12, 128, 128, 64), (4, 200, 300, 48)],
    "softmax": [(300, 700), (2000, 150), (48, 6000)],
    "layer_norm": [(300, 640), (1500, 256), (48, 5000)],
    "row_sums": [(500, 900), (100, 5000)],
    "depthwise": [(48, 1), (192, 1), (80, 2)],
    "convolution": [(48, 48), (24, 96), (80, 40)],
}  # fmt: skip
"""Shapes that the policy has not seen, and operators of which it has seen none."""

_RANGES: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    "matmul": ((1, 1200), (24, 2400), (64, 1200)),
    "matmul_bias_relu": ((8, 600), (64, 2400), (64, 800)),
    "matmul_bias_gelu": ((8, 600), (64, 2400), (64, 800)),
    "batch_matmul": ((2, 24), (32, 300), (32, 300), (32, 128)),
    "attention_scores": ((2, 16), (32, 256), (32, 256), (32, 96)),
    "softmax": ((32, 3000), (64, 4000)),
    "layer_norm": ((32, 2000), (64, 4000)),
    "row_sums": ((32, 2000), (64, 4000)),
    "depthwise": ((16, 256), (1, 1)),
    "convolution": ((8, 96), (8, 96)),
}  # fmt: skip


def drawn(count: int, seed: int) -> list[tuple[str, Shape]]:
    """Return payloads that nobody chose: operators in turn, sizes log-uniform in wide ranges."""
    random = np.random.default_rng(seed)
    found = []
    for number in range(count):
        operator = list(_RANGES)[number % len(_RANGES)]
        sizes = (np.exp(random.uniform(np.log(a), np.log(b + 1))) for a, b in _RANGES[operator])
        found.append((operator, tuple(int(size) for size in sizes)))
    return found


_IMAGE: Final = {"height": 58, "width": 58, "batch": 1}
WINDOWS: Final = ("depthwise", "convolution")


def payload_of(operator: str, shape: Shape, tools: Tools) -> Payload:
    """Return the payload of an operator and a shape."""
    make: Callable[..., str] = getattr(operators, operator)
    return read_payload(make(*shape, **(_IMAGE if operator in WINDOWS else {})), tools)


def written(shape: Shape) -> str:
    """Return a shape as tables show it."""
    return "×".join(map(str, shape))

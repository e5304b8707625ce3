"""Kernels from schedules beside OpenBLAS, oneDNN and PyTorch, on one thread.

    python -m benchmarks.schedule_kernels [--operator matmul …] [--evaluations 24] [--rounds 40]
        [--json benchmarks/results/schedule_kernels.json]

Each kernel is tuned first, then verified against numpy, then timed in turns with its references in
one process. OpenBLAS chooses its instruction set by the name of the processor, which it may not
know; so there is a second process in which the core type is forced, and the two alternate.
The best reference of a shape is the bar. Prints which instruction set each reference has used, and
the load of the machine: **run it on a quiet machine only**.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from nestor.compiler.cache import cache_place
from nestor.compiler.toolchain import find
from nestor.schedules.kernel.building import build_library
from nestor.schedules.kernel.evaluate import Task
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.kernel.measure import Settings
from nestor.schedules.language.library import packaged
from nestor.schedules.language.linking import link
from nestor.schedules.payload import operators
from nestor.schedules.payload.loops import loops_of, suggest
from nestor.schedules.payload.reading import Payload, parse_type, read_payload
from nestor.schedules.payload.reference import as_generics
from nestor.schedules.target import host
from nestor.schedules.tools import Tools, find_tools
from nestor.schedules.tune.database import Database
from nestor.schedules.tune.tuning import TuneSettings, tune
from nestor.temporary import temporary_folder

_SQUARE: Final = (256, 384, 512, 768, 1024, 1536, 2048)
_OTHER: Final[tuple[tuple[int, ...], ...]] = (
    (2048, 64, 512), (64, 2048, 512), (4096, 32, 256), (32, 4096, 256), (1000, 1000, 1000),
    (257, 513, 129), (768, 3072, 768), (3072, 768, 768), (128, 768, 3072), (100, 300, 700),
    (31, 1001, 499), (1, 1024, 1024), (1536, 96, 2048),
)  # fmt: skip
SHAPES: Final[dict[str, list[tuple[int, ...]]]] = {
    "matmul": [*((n, n, n) for n in _SQUARE), *_OTHER],
    "matmul_bias_relu": [(512, 512, 512), (128, 3072, 768), (1000, 1000, 1000), (257, 513, 129)],
    "batch_matmul": [(12, 128, 128, 64), (96, 64, 64, 64), (8, 512, 64, 512), (16, 100, 300, 50)],
    "softmax": [(128, 1024), (4096, 128), (64, 10000), (1000, 1000)],
    "layer_norm": [(128, 768), (2048, 1024), (64, 4096), (1000, 1000)],
    "depthwise": [(64, 1), (256, 1), (96, 2), (33, 1)],
    "convolution": [(64, 64), (128, 128), (32, 96), (3, 64)],
}
_IMAGE: Final = {"height": 58, "width": 58, "batch": 1}
_WINDOWS: Final = ("depthwise", "convolution")


def payload_of(operator: str, shape: tuple[int, ...], tools: Tools) -> Payload:
    """Return the payload of an operator and a shape."""
    make: Callable[..., str] = getattr(operators, operator)
    return read_payload(make(*shape, **(_IMAGE if operator in _WINDOWS else {})), tools)


def tuned_kernel(
    payload: Payload, tools: Tools, out: Path, settings: TuneSettings, database: Database
) -> dict[str, int]:
    """Write the shared object of the best choice, and return the choice."""
    task = Task(payload, packaged(), suggest(payload), host(), tools, Settings(7, numpy=False))
    best = tune(task, settings, database).best
    linked = link(task.library, task.schedule, best.choice)
    build_library(lower(payload, linked, tools), task.target, tools, out)
    return dict(best.choice)


def in_turns(
    library: Path, payload: Payload, operator: str, tools: Tools, rounds: int, passes: int
) -> dict[str, list[float]]:
    """Return the seconds of a call by name, from processes that alternate."""
    core = "SkylakeX" if "avx512f" in host().features else "Haswell"
    seconds: dict[str, list[float]] = {}
    with temporary_folder("kernels") as name:
        request, result = Path(name) / "request.json", Path(name) / "result.json"
        content = {
            "library": str(library),
            "operator": operator,
            "function": payload.name,
            "arguments": [str(kind) for kind in payload.arguments],
            "results": [str(kind) for kind in payload.results],
            "generics": as_generics(payload, tools),
            "rounds": max(2, rounds // passes),
        }
        request.write_text(json.dumps(content))
        for _ in range(passes):
            for forced in (None, core):
                words = [sys.executable, "-m", "benchmarks.schedule_kernels", "--child"]
                threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
                environment = os.environ | dict.fromkeys(threads, "1")
                environment.pop("OPENBLAS_CORETYPE", None)
                environment |= {"OPENBLAS_CORETYPE": forced} if forced else {}
                subprocess.run([*words, str(request), str(result)], env=environment, check=True)
                for one, values in json.loads(result.read_text()).items():
                    seconds.setdefault(one, []).extend(values)
    return seconds


def child(request_file: str, result_file: str) -> None:
    """Verify a kernel and time it in turns with its references."""
    import torch

    from nestor.schedules.kernel.calling import Kernel, empty
    from nestor.schedules.kernel.verify import fresh_inputs, verify
    from nestor.schedules.kernel.worker import blas, interleaved
    from nestor.schedules.payload.reference import Reference

    torch.set_num_threads(1)
    request = json.loads(Path(request_file).read_text())
    arguments, results = (
        [parse_type(text) for text in request[kind]] for kind in ("arguments", "results")
    )
    kernel = Kernel(Path(request["library"]), request["function"], arguments, results)
    verdict = verify(kernel, Reference(request["generics"], request["function"]), seed=7)
    if not verdict.correct:
        raise SystemExit(f"{request['operator']}: {verdict.reason}")
    inputs = fresh_inputs(arguments, 8)
    calls: dict[str, Callable[[], Any]] = {
        "kernel": kernel.prepared(inputs, [empty(kind) for kind in results])
    }
    capability = torch.backends.cpu.get_cpu_capability()
    calls[f"torch {torch.__version__}, {capability}"] = torch_call(request["operator"], inputs)
    plain = numpy_call(request["operator"], inputs)
    if plain is not None:
        calls[blas()] = plain
    Path(result_file).write_text(json.dumps(interleaved(calls, request["rounds"])))


def numpy_call(operator: str, inputs: list[Any]) -> Callable[[], Any] | None:
    """Return the operator in numpy, where it is a product."""
    import numpy as np

    a, b, *rest = (*inputs, None)
    if operator in ("matmul", "batch_matmul"):
        return lambda: np.matmul(a, b)
    if operator == "matmul_bias_relu":
        return lambda: np.maximum(a @ b + rest[0], 0.0)
    return None


def torch_call(operator: str, inputs: list[Any]) -> Callable[[], Any]:
    """Return the operator in PyTorch, whose products are oneDNN's or MKL's."""
    import torch
    from torch.nn import functional

    tensors = [torch.from_numpy(array) for array in inputs]
    first = tensors[0]
    if operator == "matmul_bias_relu":
        return lambda: torch.relu(torch.addmm(tensors[2], first, tensors[1]))
    if operator == "softmax":
        return lambda: torch.softmax(first, 1)
    if operator == "layer_norm":
        shape = (first.shape[1],)
        return lambda: functional.layer_norm(first, shape, tensors[1], tensors[2])
    if operator in _WINDOWS:
        image = first.permute(0, 3, 1, 2)  # channels last, as the kernel has them
        window = tensors[1]
        if operator == "depthwise":
            weight = window.permute(2, 0, 1).unsqueeze(1).contiguous()
            return lambda: functional.conv2d(image, weight, groups=image.shape[1])
        weight = window.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return lambda: functional.conv2d(image, weight)
    return lambda: torch.matmul(first, tensors[1])


def main() -> None:
    """Tune, time and print."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operator", nargs="*", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--evaluations", type=int, default=24, help="choices tried for each shape")
    parser.add_argument("--search", default="learned", help="as of nestor schedule tune")
    parser.add_argument("--rounds", type=int, default=40, help="repeats of each call")
    parser.add_argument("--passes", type=int, default=4, help="times that processes alternate")
    parser.add_argument("--limit", type=int, help="shapes of each operator")
    parser.add_argument("--database", type=Path, default=Path(cache_place()) / "schedules.sqlite")
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    tools = find_tools()
    settings = TuneSettings(options.search, options.evaluations)
    rows: list[list[Any]] = []
    ratios: dict[str, list[float]] = {}
    for operator in options.operator:
        for shape in SHAPES[operator][: options.limit]:
            payload = payload_of(operator, shape, tools)
            with temporary_folder("best") as folder:
                library = Path(folder) / "kernel.so"
                tuned_kernel(payload, tools, library, settings, Database(options.database))
                seconds = in_turns(
                    library, payload, operator, tools, options.rounds, options.passes
                )
            least = {name: min(values) for name, values in seconds.items()}
            middle = statistics.median(seconds["kernel"])
            best = min((n for n in least if n != "kernel"), key=lambda n: least[n])
            ratio = least[best] / least["kernel"]
            ratios.setdefault(operator, []).append(math.log(ratio))
            speed = loops_of(payload).operations / least["kernel"] / 1e9
            row = ["×".join(map(str, shape)), least["kernel"] * 1e6, middle * 1e6, speed,
                   least[best] * 1e6, ratio, best]  # fmt: skip
            rows.append([operator, *row])
            print(operator, *row, sep="  ")
    means = {name: math.exp(statistics.mean(values)) for name, values in ratios.items()}
    for name, mean in means.items():
        print(f"{name}: {mean:.2f} times the speed of the best reference (geometric mean)")
    if options.json is not None:
        columns = [("operator", "{}"), ("shape", "{}"), ("min, µs", "{:.1f}"),
                   ("median, µs", "{:.1f}"), ("Gop/s", "{:.1f}"), ("best reference, µs", "{:.1f}"),
                   ("times its speed", "{:.2f}"), ("best reference", "{}")]  # fmt: skip
        about = "Kernels of tuned schedules beside the best reference, one thread, verified."
        summary = record.table(
            [("operator", "{}"), ("shapes", "{}"), ("geometric mean", "{:.2f}")],
            [[name, len(ratios[name]), mean] for name, mean in means.items()],
        )
        tables = {"kernels": record.table(columns, rows), "means": summary}
        record.write(options.json, about, tables, machine.describe(find()))


if __name__ == "__main__":
    main()

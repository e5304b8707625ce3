"""Kernels from schedules beside OpenBLAS, MKL, oneDNN, libxsmm and PyTorch, on one thread.

    python -m benchmarks.schedule_kernels --training DATABASE --state FILE [--operator matmul …]
        [--evaluations 24] [--rounds 20] [--json benchmarks/results/schedule_kernels.json]

Each kernel is tuned first, by a policy that has learned from the database of ``schedule_record``,
which has none of these shapes. Then it is verified against numpy and timed in turns with its
references in one process, several times over. The best reference of a shape is the bar. The names
of references say which instruction set they have chosen. FILE keeps what was tuned and timed, so
that an interrupted run goes on. **Run it on a quiet machine only.**
"""

import argparse
import functools
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks import machine, record
from benchmarks.schedule_payloads import KERNELS, WINDOWS, Shape, payload_of, written
from benchmarks.schedule_peak import fma_peak
from benchmarks.schedule_references import ONE_THREAD
from nestor.compiler.toolchain import find
from nestor.files import write_atomically
from nestor.schedules.kernel.evaluate import Task, build_choice
from nestor.schedules.kernel.measure import Settings
from nestor.schedules.language.library import packaged
from nestor.schedules.payload.loops import loops_of, suggest
from nestor.schedules.payload.reading import Payload, parse_type
from nestor.schedules.payload.reference import as_generics
from nestor.schedules.target import find_target
from nestor.schedules.tools import Tools, find_tools
from nestor.schedules.tune.database import Database
from nestor.schedules.tune.tuning import TuneSettings, tune
from nestor.temporary import temporary_folder

PRODUCTS: Final = ("matmul", "matmul_bias_relu", "matmul_bias_gelu")
_PASSES: Final = 2
"""Processes in which a kernel is timed: where memory lies differs between them."""


def task_of(payload: Payload, target: str, tools: Tools) -> Task:
    """Return what is tuned."""
    settings = Settings(7, numpy=False)
    return Task(payload, packaged(), suggest(payload), find_target(target), tools, settings)


def tuned(task: Task, training: Path, settings: TuneSettings) -> dict[str, Any]:
    """Return the best choice, found with nothing but the training database to begin with."""
    with temporary_folder("database") as name:
        database = Path(name) / "results.sqlite"
        shutil.copyfile(training, database)
        found = tune(task, settings, Database(database))
    return {"choice": dict(found.best.choice), "evaluations": settings.evaluations,
            "first": found.first.least, "failures": found.failures}  # fmt: skip


def in_turns(task: Task, choice: dict[str, int], operator: str, rounds: int) -> dict[str, Any]:
    """Return the seconds of a call by name, from several processes."""
    payload = task.payload
    seconds: dict[str, list[float]] = {}
    with temporary_folder("kernels") as name:
        library, request, result = (
            Path(name) / n for n in ("kernel.so", "request.json", "result.json")
        )
        build_choice(task, choice, library)
        content = {
            "library": str(library),
            "operator": operator,
            "function": payload.name,
            "arguments": [str(kind) for kind in payload.arguments],
            "results": [str(kind) for kind in payload.results],
            "generics": as_generics(payload, task.tools),
            "rounds": max(2, rounds // _PASSES),
        }
        request.write_text(json.dumps(content))
        words = [sys.executable, "-m", "benchmarks.schedule_kernels", "--child"]
        for _ in range(_PASSES):
            subprocess.run([*words, request, result], env=os.environ | ONE_THREAD, check=True)
            for one, values in json.loads(result.read_text()).items():
                seconds.setdefault(one, []).extend(values)
    return {n: [min(v), statistics.median(v)] for n, v in seconds.items()}


def child(request_file: str, result_file: str) -> None:
    """Verify a kernel and time it in turns with its references."""
    import torch

    from nestor.schedules.kernel.calling import Kernel, empty
    from nestor.schedules.kernel.verify import fresh_inputs, verify
    from nestor.schedules.kernel.worker import interleaved
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
    calls[f"PyTorch {torch.__version__}: {capability}"] = torch_call(
        request["operator"], inputs, results[0].shape
    )
    calls |= product_calls(request["operator"], inputs)
    Path(result_file).write_text(json.dumps(interleaved(calls, request["rounds"])))


def product_calls(operator: str, inputs: list[Any]) -> dict[str, Callable[[], Any]]:
    """Return the calls of libraries of products; each is compared with numpy first."""
    import numpy as np

    from benchmarks.schedule_references import fused, products

    if operator == "batch_matmul":
        return {f"numpy {np.__version__}": lambda: np.matmul(inputs[0], inputs[1])}
    if operator not in PRODUCTS:
        return {}
    a, b = inputs[:2]
    found: dict[str, Callable[[], Any]] = {}
    for name, product in products(a.shape[0], b.shape[1], a.shape[1]).items():
        out = np.empty((a.shape[0], b.shape[1]), np.float32)
        product(a, b, out)
        if not np.allclose(out, a @ b, rtol=1e-3, atol=1e-2):
            raise SystemExit(f"{name} computes something else")
        whole, label = product, name
        if operator != "matmul":
            whole = fused(product, inputs[2], gelu=operator.endswith("gelu"))
            label = f"{name}, then numpy"
        found[label] = functools.partial(whole, a, b, out)
    return found


def torch_call(operator: str, inputs: list[Any], result: Shape) -> Callable[[], Any]:
    """Return the operator in PyTorch, whose products are MKL's.

    Where it can write to memory that is there, it does, as kernels do: fresh memory of the system
    costs as much as a softmax.

    :param result: the shape of the result, which says by how much windows move.
    """
    import torch
    from torch.nn import functional

    tensors = [torch.from_numpy(array) for array in inputs]
    first = tensors[0]
    if operator.startswith("matmul_bias"):
        out = torch.empty(result)
        product = functools.partial(torch.addmm, tensors[2], first, tensors[1], out=out)
        if operator.endswith("gelu"):
            return lambda: functional.gelu(product(), approximate="tanh")
        return lambda: product().relu_()
    if operator == "softmax":
        out = torch.empty(result)
        return lambda: torch.softmax(first, 1, out=out)
    if operator == "layer_norm":
        shape = (first.shape[1],)
        return lambda: functional.layer_norm(first, shape, tensors[1], tensors[2])
    if operator in WINDOWS:
        image = first.permute(0, 3, 1, 2)  # channels last, as the kernel has them
        window = tensors[1]
        if operator == "depthwise":
            weight = window.permute(2, 0, 1).unsqueeze(1).contiguous()
            stride = (first.shape[1] - 3) // (result[1] - 1)
            return lambda: functional.conv2d(image, weight, stride=stride, groups=image.shape[1])
        weight = window.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        return lambda: functional.conv2d(image, weight)
    out = torch.empty((*first.shape[:-1], tensors[1].shape[-1]))
    return lambda: torch.matmul(first, tensors[1], out=out)


class State:
    """What was found so far, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found = json.loads(path.read_text()) if path.exists() else {}

    def get(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return what was found under a key, or make it."""
        if key not in self.found:
            self.found[key] = make()
            write_atomically(self.path, json.dumps(self.found, indent=1))
        result: dict[str, Any] = self.found[key]
        return result


def row_of(seconds: dict[str, Any], operations: float, peak: float) -> list[Any]:
    """Return the cells of a shape: times, speeds, and the best reference."""
    least, middle = seconds["kernel"]
    best = min((n for n in seconds if n != "kernel"), key=lambda n: seconds[n][0])
    reference = seconds[best][0]
    speed = operations / least
    return [least * 1e6, middle * 1e6, speed / 1e9, 100 * speed / peak, reference * 1e6,
            reference / least, best]  # fmt: skip


def tables_of(rows: dict[str, list[list[Any]]]) -> dict[str, record.Table]:
    """Return the tables: each shape, and means by operator."""
    columns = [("operator", "{}"), ("shape", "{}"), ("min, µs", "{:.1f}"),
               ("median, µs", "{:.1f}"), ("Gop/s", "{:.1f}"), ("of the peak", "{:.0f} %"),
               ("best reference, µs", "{:.1f}"), ("times its speed", "{:.2f}"),
               ("best reference", "{}")]  # fmt: skip
    every = [[operator, *row] for operator, some in rows.items() for row in some]
    means = [
        [operator, len(some), math.exp(statistics.mean(math.log(row[6]) for row in some)),
         min(row[6] for row in some), max(row[4] for row in some)]
        for operator, some in rows.items()
    ]  # fmt: skip
    summary = [("operator", "{}"), ("shapes", "{}"), ("times the speed of the best reference,"
               " geometric mean", "{:.2f}"), ("at least", "{:.2f}"),
               ("of the FMA peak at best", "{:.0f} %")]  # fmt: skip
    return {"kernels": record.table(columns, every), "means": record.table(summary, means)}


def main() -> None:
    """Tune, time and print."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--training", type=Path, required=True, help="what the policy learns from")
    parser.add_argument("--state", type=Path, required=True, help="keeps what was found")
    parser.add_argument("--operator", nargs="*", choices=list(KERNELS), default=list(KERNELS))
    parser.add_argument(
        "--target", default="host", help="host, or avx2 on a processor that has more"
    )
    parser.add_argument("--evaluations", type=int, default=24, help="choices tried for each shape")
    parser.add_argument("--search", default="learned", help="as of nestor schedule tune")
    parser.add_argument("--rounds", type=int, default=21, help="repeats of each call")
    parser.add_argument("--limit", type=int, help="shapes of each operator")
    parser.add_argument("--json", type=Path, help="write the tables to this file")
    options = parser.parse_args()
    tools, state = find_tools(), State(options.state)
    peak = fma_peak(find_target(options.target), tools)
    print(f"peak of multiply-adds: {peak / 1e9:.1f} Gop/s")
    settings = TuneSettings(options.search, options.evaluations)
    rows: dict[str, list[list[Any]]] = {}
    for operator in options.operator:
        for shape in KERNELS[operator][: options.limit]:
            row = one_shape(operator, shape, options, tools, state, settings, peak)
            rows.setdefault(operator, []).append([written(shape), *row])
            print(
                operator, written(shape), *(f"{c:.4g}" if isinstance(c, float) else c for c in row)
            )
    tables = tables_of(rows)
    for line in tables["means"]["rows"]:
        print(line)
    if options.json is not None:
        about = "Kernels of tuned schedules beside the best reference, one thread, verified."
        record.write(options.json, about, tables, machine.describe(find()), peak_gops=peak / 1e9)


def one_shape(
    operator: str, shape: Shape, options: Any, tools: Tools, state: State, settings: TuneSettings,
    peak: float,
) -> list[Any]:  # fmt: skip
    """Tune and time one shape, unless the state has it."""
    payload = payload_of(operator, shape, tools)
    task = task_of(payload, options.target, tools)
    key = f"{options.target} {operator} {written(shape)}"
    best = state.get(f"{key} tuned", lambda: tuned(task, options.training, settings))
    seconds = state.get(
        f"{key} timed", lambda: in_turns(task, best["choice"], operator, options.rounds)
    )
    return row_of(seconds, loops_of(payload).operations, peak)


if __name__ == "__main__":
    main()

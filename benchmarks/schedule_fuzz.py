"""Do damaged payloads, schedules and choices always end in a diagnosis?

    python -m benchmarks.schedule_fuzz [--cases 2000] [--seed 0] [--json FILE]

Each case is a payload with some damage (words, numbers or characters removed, doubled or
exchanged), or a sound payload under a random choice of any schedule, also one for other operators,
or a damaged schedule. It must lower, or end in an error with a reason within its limit; anything
else, such as an exception of another kind, is printed with the case and fails the run.
"""

import argparse
import collections
import re
import time
import traceback
from pathlib import Path

import numpy as np

from benchmarks import machine, record
from nestor.compiler.process import Limits
from nestor.compiler.toolchain import find
from nestor.errors import NestorError
from nestor.files import write_atomically
from nestor.schedules.kernel.guess import guess
from nestor.schedules.kernel.lowering import lower
from nestor.schedules.language.library import PACKAGED, load, packaged
from nestor.schedules.language.linking import decisions_of, link
from nestor.schedules.payload import operators
from nestor.schedules.payload.loops import loops_of, suggest
from nestor.schedules.payload.reading import read_payload
from nestor.schedules.payload.reference import Reference, as_generics
from nestor.schedules.target import host
from nestor.schedules.tools import Tools, find_tools
from nestor.schedules.tune import space
from nestor.temporary import temporary_folder

LIMITS = Limits(seconds=20.0, memory_mib=2048)
RECORDED = Path(__file__).resolve().parent.parent / "tests" / "schedules" / "data"
"""What torch-mlir and IREE's importer wrote."""
PAYLOADS = (
    operators.matmul(17, 33, 9), operators.matmul_bias_relu(12, 20, 8), operators.softmax(5, 40),
    operators.layer_norm(4, 24), operators.batch_matmul(2, 9, 17, 5), operators.chain(3, 50),
    operators.depthwise(9, 1), operators.convolution(3, 10), operators.row_sums(6, 30),
    operators.attention_scores(2, 6, 10, 4), operators.mixed_matmul("i8", "i32"),
    *(path.read_text() for path in sorted(RECORDED.glob("*.mlir"))),
)  # fmt: skip
_WORD = re.compile(r"[\w.%@#]+|\s+|.", re.DOTALL)
_NUMBERS = ("0", "1", "-1", "3", "1000000007", "9223372036854775807", "18446744073709551616")


def damaged(text: str, random: np.random.Generator) -> str:
    """Return a text with one to four words removed, doubled, exchanged or changed."""
    words = _WORD.findall(text)
    for _ in range(1 + int(random.integers(4))):
        at = int(random.integers(len(words)))
        kind = int(random.integers(5))
        if kind == 0:
            words[at] = ""
        elif kind == 1:
            words[at] *= 2
        elif kind == 2:
            other = int(random.integers(len(words)))
            words[at], words[other] = words[other], words[at]
        elif kind == 3:
            number = _NUMBERS[int(random.integers(len(_NUMBERS)))]
            words[at] = re.sub(r"\d+", number, words[at], count=1)
        else:
            words[at] = "".join(reversed(words[at]))
    return "".join(words)


def one_case(random: np.random.Generator, tools: Tools) -> tuple[str, str]:
    """Run one case, and return what was damaged and how it ended."""
    text = PAYLOADS[int(random.integers(len(PAYLOADS)))]
    kind = ("payload", "choice", "schedule")[int(random.integers(3))]
    library = packaged()
    try:
        payload = read_payload(damaged(text, random) if kind == "payload" else text, tools)
        name = suggest(payload)
        if kind == "choice":
            names = [s.name for s in library.pipelines()]
            name = names[int(random.integers(len(names)))]
        if kind == "schedule":
            with temporary_folder("fuzz") as folder:
                step = library.closure(name)[int(random.integers(len(library.closure(name))))]
                mine = Path(folder) / "mine.mlir"
                write_atomically(mine, damaged(step.place.file.read_text(), random))
                library = load([PACKAGED, mine])
        decisions = decisions_of(library, name)
        choice = guess(decisions, loops_of(payload), host())
        if kind == "choice":
            choice = space.drawn(decisions, random)
        lower(payload, link(library, name, choice), tools, LIMITS)
        Reference(as_generics(payload, tools), payload.name)
    except NestorError as error:
        return kind, "diagnosis" if str(error).strip() else "no reason"
    return kind, "lowered"


def run(cases: int, seed: int, tools: Tools) -> tuple[dict[tuple[str, str], int], float]:
    """Run cases, and return how many ended how, and the longest in seconds."""
    found: collections.Counter[tuple[str, str]] = collections.Counter()
    longest = 0.0
    for number in range(cases):
        start = time.monotonic()
        try:
            found[one_case(np.random.default_rng([seed, number]), tools)] += 1
        except Exception:
            print(f"case {number}:\n{traceback.format_exc()}")
            found["any", "exception"] += 1
        longest = max(longest, time.monotonic() - start)
    return dict(found), longest


def main() -> int:
    """Run and print; 1 if a case ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the damage")
    parser.add_argument("--json", type=Path, help="write the table to this file")
    options = parser.parse_args()
    found, longest = run(options.cases, options.seed, find_tools())
    rows = [[kind, ending, count] for (kind, ending), count in sorted(found.items())]
    for row in rows:
        print(*row, sep="  ")
    print(f"longest case: {longest:.1f} s")
    if options.json is not None:
        columns = [("damaged", "{}"), ("ends as", "{}"), ("cases", "{}")]
        about = "Damaged payloads, schedules and random choices, and how they end."
        tables = {"cases": record.table(columns, rows)}
        record.write(options.json, about, tables, machine.describe(find()), longest=longest)
    return int(any(ending not in ("diagnosis", "lowered") for _, ending in found))


if __name__ == "__main__":
    raise SystemExit(main())

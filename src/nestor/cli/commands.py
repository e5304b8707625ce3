"""The table of commands.

Commands are looked up by name and imported only when they run, so that the compiler wrappers
start as fast as Python does.
"""

import importlib
from typing import Final, NamedTuple


class Command(NamedTuple):
    """Where a command lives, and what it does in one line."""

    place: str
    """Within this package: ``module:Class`` for a tyro dataclass with ``run``, ``module:function``
    for raw words."""
    summary: str
    resumes: bool = False
    """The same command goes on where it was interrupted."""


COMMANDS: Final = {
    "doctor": Command("doctor:Doctor", "Find LLVM, build the plugin, prove identity"),
    "corpus fetch": Command("corpus.fetch:Fetch", "Fetch and capture Debian sources", resumes=True),
    "corpus sample": Command("corpus.sample:Sample", "Draw source packages at random"),
    "corpus capture": Command("corpus.capture:Capture", "Capture your own build"),
    "corpus info": Command("corpus.info:Info", "Show what a corpus holds"),
    "corpus sweep": Command("corpus.sweep:Sweep", "Time a stock compile of a corpus"),
    "corpus overlap": Command("corpus.overlap:Overlap", "Check held-out code for copies"),
    "corpus codegen": Command("corpus.codegen:Codegen", "Run the middle end on all modules"),
    "corpus profile": Command("corpus.profile:Profile", "Give modules the counts of a run"),
    "corpus import": Command("corpus.copies:Import", "Copy a corpus in LLVM's layout"),
    "corpus export": Command("corpus.copies:Export", "Write a corpus in LLVM's layout"),
    "train": Command("policies.train:Train", "Train a policy for a problem", resumes=True),
    "compare": Command("policies.compare:Compare", "Set training runs side by side"),
    "evaluate": Command("policies.evaluate:Evaluate", "Compare a policy with stock, linked"),
    "workload list": Command("workload.list:List", "Show programs with workloads"),
    "workload measure": Command(
        "workload.measure:Measure", "Count what programs execute under policies", resumes=True
    ),
    "workload calls": Command(
        "workload.calls:Calls", "Count calls of functions, for scores", resumes=True
    ),
    "workload time": Command("workload.timing:Time", "Time programs against stock's own noise"),
    "tune": Command("policies.tune:Tune", "Search for one program's best decisions", resumes=True),
    "overrides check": Command(
        "policies.overrides:Check", "Find lines of overrides that match nothing"
    ),
    "overrides record": Command("debug.record:Record", "Write what a policy decides as overrides"),
    "bisect": Command(
        "debug.bisect:Bisect", "Find the decisions that make a program fail", resumes=True
    ),
    "explain": Command("debug.explain:Explain", "Show decisions about the calls on a line"),
    "size-check": Command("debug.size_check:SizeCheckCommand", "Compare the sizes of two builds"),
    "report": Command("debug.report:Report", "Write a page of all decisions in a program"),
    "guard": Command("policies.guard:Guard", "List modules to leave to stock: never worse"),
    "build": Command("use.build:Build", "Build a program of a corpus under a policy"),
    "summary": Command("use.summary:Summary", "Summarise a program's objects for policies"),
    "costmodel train": Command("blocks.costmodel:Train", "Train a cost model of blocks"),
    "costmodel adapt": Command("blocks.adapt:Adapt", "Fit a model to a new machine"),
    "costmodel join": Command("blocks.costmodel:Join", "Join models of several machines"),
    "costmodel evaluate": Command("blocks.costmodel:Evaluate", "Judge one by measured blocks"),
    "costmodel audit": Command("blocks.audit:Audit", "Show where LLVM's scheduling model errs"),
    "costmodel predict": Command("blocks.costmodel_use:Predict", "Predict cycles of code"),
    "costmodel functions": Command(
        "blocks.functions:Functions", "Show the expected cost of one call"
    ),
    "costmodel program": Command("events.program:Program", "Predict the cycles of a whole run"),
    "costmodel penalties": Command("events.penalties:Penalties", "Measure what misses cost here"),
    "costmodel cycles": Command("events.fit:Cycles", "Measure the cycles of whole runs"),
    "costmodel fit-program": Command("events.fit:Fit", "Fit a model of programs to measured runs"),
    "costmodel record-trace": Command("blocks.trace:RecordTrace", "Trace the blocks of a run"),
    "costmodel trace-model": Command("blocks.trace:TraceModel", "Print the cost of a trace"),
    "costmodel explain": Command("blocks.explain:Explain", "Show how a prediction comes about"),
    "costmodel report": Command("blocks.cost_page:CostPage", "Write a page of predicted cycles"),
    "events": Command("events.events:Events", "Count events of a run by basic block"),
    "sizes": Command("policies.sizes:Sizes", "Train a model of functions' code size"),
    "identity": Command("policies.identity:Identity", "Run the identity gate on a corpus"),
    "blocks extract": Command("blocks.blocks:Extract", "Take basic blocks out of code"),
    "blocks sweep": Command("blocks.sweep:Sweep", "Make blocks of every instruction"),
    "blocks info": Command("blocks.blocks:Info", "Show what a table of blocks holds"),
    "blocks choose": Command("blocks.choose:Choose", "Choose blocks worth measuring"),
    "blocks measure": Command(
        "blocks.measure:Measure", "Label blocks with measured cycles", resumes=True
    ),
    "schedule list": Command("schedule.list:List", "Show schedules that lower linalg payloads"),
    "schedule check": Command("schedule.check:Check", "Find what is wrong with schedules"),
    "schedule graph": Command("schedule.graph:Graph", "Show of which steps schedules consist"),
    "schedule apply": Command("schedule.apply:Apply", "Lower a payload by a schedule"),
    "schedule run": Command("schedule.run:Run", "Compile a payload, verify it, time it"),
    "schedule tune": Command("schedule.tune:Tune", "Search for the fastest choice", resumes=True),
    "schedule replay": Command("schedule.replay:Replay", "Run under a tuned schedule"),
    "schedule train": Command("schedule.train:Train", "Train a policy that guesses choices"),
    "problem list": Command("policies.problem:List", "Show the decision problems"),
    "problem check": Command("policies.problem:Check", "Check what learners rely on"),
    "log": Command("policies.log:Log", "Show what a policy decides in one compile"),
    "policy": Command("policies.policy:Policy", "Describe a policy file"),
    "import": Command("policies.import_model:Import", "Read a policy from a TFLite model"),
    "release": Command("use.release:Release", "Write a policy for a build without Nestor"),
}
"""Commands with options of their own."""

PASS_THROUGH: Final = {
    "cc": Command("corpus.cc:run", "clang that also captures (CC='nestor cc')"),
    "c++": Command("corpus.cc:run", "clang++ that also captures (CXX='nestor c++')"),
    "clang": Command("use.use:clang", "clang under a policy: nestor clang POLICY -- ARGS"),
    "clang++": Command("use.use:clang", "clang++ under a policy"),
    "make": Command("make.make:run", "Build with a summary: nestor make -- make -j8"),
    "flags": Command("use.use:flags", "Print the clang flags that use a policy"),
}
"""Commands whose words belong to the compiler."""


def load(command: Command):  # type: ignore[no-untyped-def]  # a class or a function
    """Import a command and return its class, or its function if its words are raw."""
    module, name = command.place.split(":")
    return getattr(importlib.import_module(f"nestor.cli.{module}"), name)

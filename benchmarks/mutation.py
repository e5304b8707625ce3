"""Changes of the source of update rules that the tests of learners must notice.

A mutant changes one place in a function: a comparison, an arithmetic operator, a sign, a number, a
condition, a minimum, a keyword argument. What is only plotted (dictionaries of metrics), checks
(assertions, errors, ``strict`` of zip) and ``set_up`` are left alone. :data:`NAMED` are changes
that are faults of their own, such as PPO without clipping; :data:`EQUIVALENT` are mutants that
compute the same as the original.
"""

import ast
import copy
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "src" / "nestor" / "learn"
SKIPPED: Final = ("set_up", "__post_init__")
"""Functions that set a learner up or word an error."""

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip
NAMES: Final = {
    "minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min",
    "argsort": "argmax", "argmin": "argmax", "zeros": "ones", "zeros_like": "ones_like",
}  # fmt: skip


NAMED: Final = {
    "PPO without clipping": (
        "algorithms/ppo.py",
        "torch.minimum(ratio * gain, near * gain).mean()",
        "(ratio * gain).mean()",
    ),
    "PPO without the stop by KL": (
        "algorithms/ppo.py",
        "if divergence > settings.stop:",
        "if False:",
    ),
    "PPO with the sign of the entropy flipped": (
        "algorithms/ppo.py",
        "-objective - settings.entropy * entropy",
        "-objective + settings.entropy * entropy",
    ),
    "REINFORCE with the sign of the entropy flipped": (
        "algorithms/reinforce.py",
        "-objective - settings.entropy * entropy",
        "-objective + settings.entropy * entropy",
    ),
    "Adam without bias correction (a step count so large that the correction is 1)": (
        "gradient/optimiser.py",
        '"step": torch.tensor(float(state.updates))',
        '"step": torch.tensor(1e9)',
    ),
    "Adam with its step count dropped (every step corrected as the first)": (
        "gradient/optimiser.py",
        '"step": torch.tensor(float(state.updates))',
        '"step": torch.tensor(0.0)',
    ),
    "DQN without target network in the values of the next question": (
        "algorithms/dqn.py",
        "_best_values(network.to_torch(policy_of(self.start, state.target)), after)",
        "_best_values(network.to_torch(policy_of(self.start, state.optimiser.parameters)), after)",
    ),
    "DQN whose target network does not lag": (
        "algorithms/dqn.py",
        "target = slow * target + (1 - slow) * optimiser.parameters",
        "target = optimiser.parameters",
    ),
}
"""Faults by name: the file, the text that occurs once in it, and the text in its place."""

_SHORTEN = "if norm > clip:"
_NO_DISCOUNT = "if discount == 0:"
_FORGET = "if forgotten <= 0:"
_AGREEMENT = "agreement = 0.0"

EQUIVALENT: Final = {
    ("gradient/descent.py", _SHORTEN, "Gt to GtE"): (
        "a gradient as long as the limit is multiplied by 1"
    ),
    ("gradient/memory.py", _FORGET, "LtE to Lt"): (
        "with nothing to forget the parts from 0 on are the whole"
    ),
    ("algorithms/dqn.py", _NO_DISCOUNT, "condition always false"): (
        "a discount of 0 adds 0 to the reward; the condition saves time"
    ),
    ("algorithms/cloning.py", _AGREEMENT, "0.0 to 1.0"): (
        "the loss is computed, and sets it, before it is read"
    ),
}
"""Why a mutant computes the same as the original, by file, line of code and change."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    file: str
    line: int
    code: str
    """The line of code."""
    change: str
    source: str
    """The whole changed file."""

    @property
    def key(self) -> str:
        """A digest of file and source."""
        return hashlib.sha256(f"{self.file}\n{self.source}".encode()).hexdigest()[:24]

    @property
    def equivalent(self) -> str | None:
        """Why it computes the same as the original; None if it does not."""
        return EQUIVALENT.get((self.file, self.code, self.change))


def unchanged(file: str) -> Mutant:
    """Return the file of the package as it is."""
    source = (PACKAGE / file).read_text()
    return Mutant(file, 0, "", "nothing", ast.unparse(ast.parse(source)))


def named_mutants() -> list[Mutant]:
    """Return the mutants of :data:`NAMED`.

    :raises ValueError: if a text to replace does not occur just once.
    """
    found = []
    for name, (file, before, after) in NAMED.items():
        source = (PACKAGE / file).read_text()
        if source.count(before) != 1:
            raise ValueError(f"{name}: '{before}' does not occur once in {file}")
        line = source[: source.index(before)].count("\n") + 1
        found.append(Mutant(file, line, before, name, source.replace(before, after)))
    return found


def mutants_of(file: str) -> Iterator[Mutant]:
    """Yield every mutant of a file of the package."""
    text = (PACKAGE / file).read_text()
    tree, lines = ast.parse(text), text.splitlines()
    for place, node in enumerate(_nodes(tree)):
        for number, change in enumerate(_changes(node)):
            changed = copy.deepcopy(tree)
            target = next(n for p, n in enumerate(_nodes(changed)) if p == place)
            _apply(changed, target, number)
            line: int = node.lineno  # type: ignore[attr-defined]  # expressions and statements
            source = ast.unparse(ast.fix_missing_locations(changed))
            yield Mutant(file, line, lines[line - 1].strip(), change, source)


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes of all functions that may be changed, in a fixed order."""
    found: list[ast.AST] = []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.FunctionDef):
            if node.name in SKIPPED:
                return
            for statement in node.body:
                visit(statement, True)
            return
        metrics = isinstance(node, ast.Dict) and all(
            isinstance(key, ast.Constant) and isinstance(key.value, str)
            for key in node.keys
            if key is not None
        )
        if metrics or isinstance(node, ast.Raise | ast.Assert) or _is_check(node):
            return
        if inside:
            found.append(node)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, False)
    return found


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _optional(call: ast.Call) -> list[ast.keyword]:
    """Return the arguments with a name that may be left out."""
    return [word for word in call.keywords if word.arg is not None and not _is_check(word)]


def _changes(node: ast.AST) -> list[str]:
    """Return what can be changed at a node, in words."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        other = COMPARISONS[type(node.ops[0])].__name__
        return [f"{type(node.ops[0]).__name__} to {other}"]
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return [f"{type(node.op).__name__} to {OPERATORS[type(node.op)].__name__}"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        return [f"{type(node.op).__name__} removed"]
    if isinstance(node, ast.BoolOp):
        return ["and to or" if isinstance(node.op, ast.And) else "or to and"]
    if isinstance(node, ast.IfExp):
        return ["always the first", "always the second"]
    if isinstance(node, ast.If):
        return ["condition always true", "condition always false"]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [f"{node.value} to {not node.value}"]
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return [f"{node.value} to {node.value + 1}"]
    if isinstance(node, ast.Attribute) and node.attr in NAMES:
        return [f"{node.attr} to {NAMES[node.attr]}"]
    if isinstance(node, ast.Name) and node.id in NAMES:
        return [f"{node.id} to {NAMES[node.id]}"]
    if isinstance(node, ast.Call) and node.keywords:
        return [f"argument {keyword.arg} left out" for keyword in _optional(node)]
    if isinstance(node, ast.Break):
        return ["break left out"]
    return []


def _apply(tree: ast.AST, node: ast.AST, number: int) -> None:
    """Change a node of ``tree`` in the way of this number of :func:`_changes`."""
    if isinstance(node, ast.Compare):
        node.ops = [COMPARISONS[type(node.ops[0])]()]
    elif isinstance(node, ast.BinOp):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.If):
        node.test = ast.Constant(number == 0)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            node.value = not node.value
        elif isinstance(node.value, int | float):
            node.value += 1
    elif isinstance(node, ast.Attribute):
        node.attr = NAMES[node.attr]
    elif isinstance(node, ast.Name):
        node.id = NAMES[node.id]
    elif isinstance(node, ast.Call):
        left_out = _optional(node)[number]
        node.keywords = [keyword for keyword in node.keywords if keyword is not left_out]
    elif isinstance(node, ast.UnaryOp | ast.IfExp | ast.Break):
        _replace(tree, node, number)


def _replace(tree: ast.AST, node: ast.AST, number: int) -> None:
    new: ast.AST
    if isinstance(node, ast.UnaryOp):
        new = node.operand
    elif isinstance(node, ast.IfExp):
        new = (node.body, node.orelse)[number]
    else:
        new = ast.Pass()
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(item is node for item in value):
                value[:] = [new if item is node else item for item in value]

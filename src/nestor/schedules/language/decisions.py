"""The decisions of a schedule, ``transform.tune.knob`` and ``transform.tune.alternatives``."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from nestor.schedules.language.text import Place, ScheduleError, blanked, closing, line_of

Choice = Mapping[str, int]
"""The answer to each decision: the value of a knob, the index of a region from 0."""

_KNOB: Final = re.compile(
    r'transform\.tune\.knob\s*<\s*"(?P<name>[^"\n]+)"\s*>\s*(?:=\s*(?P<selected>-?\d+(?:\s*:\s*i64)?)\s+from\s+)?'
    r"options\s*=\s*\[(?P<options>[^\]]*)\](?P<attributes>\s*\{[^}]*\})?\s*->\s*"
    r"(?P<type>!transform\.[\w.]+(?:\s*<[^>]*>)?)"
)
_ALTERNATIVES: Final = re.compile(
    r"(?:(?P<results>%[\w.$:-]+(?:\s*,\s*%[\w.$:-]+)*)\s*=\s*)?"
    r'transform\.tune\.alternatives\s*<\s*"(?P<name>[^"\n]+)"\s*>'
    r"(?:\s*selected_region\s*=\s*(?P<selected>%?[\w]+)(?:\s*:\s*i64)?)?(?P<rest>[^{]*)\{"
)
_INTEGER: Final = re.compile(r"(-?\d+)(?:\s*:\s*i64)?\Z")


@dataclass(frozen=True)
class Decision:
    """One decision of a schedule."""

    name: str
    options: tuple[int, ...]
    """The values that it may take; for alternatives the indices of the regions."""
    selected: int | None
    """What the schedule itself selects, if it does."""
    place: Place
    kind: str
    """``knob`` or ``alternatives``."""


def decisions_in(text: str, place: Place) -> list[Decision]:
    """Return the decisions in a text, in order.

    :param place: of the first line.
    :raises ScheduleError: if one cannot be read, or has no options.
    """
    code = _without_comments(text)
    found = []
    for match in _KNOB.finditer(code):
        where = Place(place.file, place.line + line_of(text, match.start()) - 1)
        options = tuple(
            _integer(word, where) for word in match["options"].split(",") if word.strip()
        )
        if not options:
            raise ScheduleError(f"{where}: the knob '{match['name']}' has no options.")
        selected = None if match["selected"] is None else _integer(match["selected"], where)
        found.append((match.start(), Decision(match["name"], options, selected, where, "knob")))
    for match in _ALTERNATIVES.finditer(code):
        where = Place(place.file, place.line + line_of(text, match.start()) - 1)
        regions = _regions(blanked(text), match.end() - 1, where)
        word = match["selected"]
        selected = int(word) if word and word.isdigit() else None
        options = tuple(range(len(regions)))
        found.append(
            (match.start(), Decision(match["name"], options, selected, where, "alternatives"))
        )
    return [decision for _, decision in sorted(found, key=lambda pair: pair[0])]


def resolved(text: str, choice: Choice, place: Place) -> str:
    """Return a text in which every decision is replaced by what was chosen.

    A knob becomes a constant parameter. Alternatives become the operations of the chosen region.

    :param place: of the first line, for messages.
    :raises ScheduleError: if a decision has no answer or one that is not among its options.
    """
    for decision in decisions_in(text, place):
        value = choice.get(decision.name, decision.selected)
        if value is None:
            raise ScheduleError(f"{decision.place}: the decision '{decision.name}' has no answer.")
        if value not in decision.options:
            raise ScheduleError(
                f"{decision.place}: '{decision.name}' cannot be {value}: its options are"
                f" {', '.join(map(str, decision.options))}."
            )
    while match := _ALTERNATIVES.search(_without_comments(text)):
        text = _with_region(text, match, choice, place)
    return _with_constants(text, choice)


def _with_constants(text: str, choice: Choice) -> str:
    pieces, end = [], 0
    for match in _KNOB.finditer(_without_comments(text)):
        value = str(choice.get(match["name"], match["selected"])).partition(":")[0].strip()
        constant = f"transform.param.constant {value} : i64 -> {match['type']}"
        # As many line breaks as before: every line keeps its number.
        pieces += [text[end : match.start()], constant, "\n" * match[0].count("\n")]
        end = match.end()
    return "".join([*pieces, text[end:]])


def _with_region(text: str, match: re.Match[str], choice: Choice, place: Place) -> str:
    """Replace one ``alternatives`` by the region that was chosen."""
    where = Place(place.file, place.line + line_of(text, match.start()) - 1)
    regions = _regions(blanked(text), match.end() - 1, where)
    index = int(choice.get(match["name"], match["selected"] or 0))
    start, stop = regions[index]
    body = text[start + 1 : stop]
    rest = text[regions[-1][1] + 1 :]
    results = [word.strip() for word in (match["results"] or "").split(",") if word.strip()]
    code = _without_comments(body)
    at = code.rfind("transform.yield")
    if at >= 0:
        words = code[at:].removeprefix("transform.yield").partition(":")[0]
        operands = [word.strip() for word in words.split(",") if word.strip()]
        body = body[:at].rstrip()
        if len(operands) != len(results):
            raise ScheduleError(f"{where}: a region of '{match['name']}' yields another number.")
        for result, operand in zip(results, operands, strict=True):
            rest = re.sub(rf"{re.escape(result)}(?![\w.$-])", operand, rest)
    # As many line breaks before and after it as were there: every line keeps its number.
    before = text.count("\n", match.start(), start)
    kept = body.rstrip()
    total = text.count("\n", match.start(), regions[-1][1])
    after = total - before - kept.count("\n")
    return text[: match.start()].rstrip(" ") + "\n" * before + kept + "\n" * max(0, after) + rest


def _regions(code: str, start: int, place: Place) -> list[tuple[int, int]]:
    """Return where each region of an operation begins and ends; the first begins at ``start``."""
    regions = []
    while True:
        end = closing(code, start, place)
        regions.append((start, end))
        following = re.compile(r"\s*,\s*\{").match(code, end + 1)
        if following is None:
            return regions
        start = following.end() - 1


def _without_comments(text: str) -> str:
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda m: m[1] or " " * len(m[0]), text)


def _integer(word: str, place: Place) -> int:
    match = _INTEGER.match(word.strip())
    if match is None:
        raise ScheduleError(
            f"{place}: '{word.strip()}' is no integer; decisions are integers here."
        )
    return int(match[1])


def agreeing(decisions: Sequence[Decision]) -> list[Decision]:
    """Return each decision once.

    :raises ScheduleError: if two of one name have different options.
    """
    found: dict[str, Decision] = {}
    for decision in decisions:
        first = found.setdefault(decision.name, decision)
        if first.options != decision.options:
            raise ScheduleError(
                f"{decision.place}: '{decision.name}' has other options than at {first.place}."
            )
    return list(found.values())

"""Payloads as IREE's importers write them: linalg on tensors in functions of IREE's own.

``iree-compile --compile-to=input`` leaves linalg operations as they are and puts them in
``util.func``, with tensors as arguments and results, or with buffers (``!hal.buffer_view``) that
become tensors inside, or with fences besides. Here such a function becomes ``func.func`` on
tensors, and what only calls it is left out. Each line keeps its number.
"""

import re
from pathlib import Path
from typing import Final

from nestor.schedules.language.text import Place, ScheduleError, blanked, closing, line_of

_FUNCTION: Final = re.compile(r"\butil\.func\s+(?P<visible>public|private)?\s*@(?P<name>[\w.$-]+)")
_ARGUMENT: Final = re.compile(r"(%[\w$.-]+):\s*([^%]+?)\s*(?:,\s*(?=%)|\Z)")
_VALUE: Final = r"%[\w$.#-]+"
_IMPORT: Final = re.compile(
    rf"(?P<tensor>{_VALUE}) = hal\.tensor\.import (?:wait\({_VALUE}\) => )?(?P<buffer>{_VALUE})"
    r'(?: "[^"\n]*")? : !hal\.buffer_view -> (?P<type>tensor<[^\n]*>)'
)
_EXPORT: Final = re.compile(
    rf"(?P<buffer>{_VALUE}) = hal\.tensor\.export (?P<tensor>{_VALUE})"
    r'(?: "[^"\n]*")? : (?P<type>tensor<[^\n]*>) -> !hal\.buffer_view'
)
_BARRIER: Final = re.compile(
    r"(?P<result>%[\w$.-]+)(?::\d+)? = hal\.tensor\.barrier join\((?P<values>[^:\n]*) : [^\n]*\)"
    rf" => {_VALUE} : !hal\.fence"
)
_RETURN: Final = re.compile(r"\butil\.return(?P<values>[^:\n]*)(?::(?P<types>[^\n]*))?")
_GLOBAL: Final = re.compile(r"^\s*util\.global\b[^\n]*", re.MULTILINE)
_MODULE: Final = re.compile(r"\bmodule(?:\s+@[\w.$-]+)?\s+attributes\s*(?=\{)")


def without_iree(text: str, file: Path) -> str:
    """Return a module whose functions are ``func.func`` on tensors; another one as it is.

    :param file: for messages.
    :raises ScheduleError: if a function has no body or returns nothing.
    """
    code = blanked(text)
    if _FUNCTION.search(code) is None:
        return text
    pieces, end = [], 0
    for match in _FUNCTION.finditer(code):
        place = Place(file, line_of(text, match.start()))
        opening = code.find("(", match.end())
        after = closing(code, opening, place) + 1 if opening >= 0 else -1
        body = _body(code, after, place)
        stop = closing(code, body, place) + 1
        whole = text[match.start() : stop]
        arguments, inside = text[opening + 1 : after - 1], text[body + 1 : stop - 1]
        function = _function(match, arguments, inside, place)
        gap = text.count("\n", match.start(), body) if function else whole.count("\n")
        pieces += [text[end : match.start()], "\n" * gap, function]
        end = stop
    rest = "".join([*pieces, text[end:]])
    return _plain_module(_GLOBAL.sub("", rest))


def _body(code: str, after: int, place: Place) -> int:
    """Return where the body of a function begins whose arguments end at ``after``."""
    attributes = re.compile(r"[^{]*\battributes\s*(?=\{)").match(code, after)
    if attributes:
        after = closing(code, attributes.end(), place) + 1
    body = code.find("{", after)
    if after < 0 or body < 0:
        raise ScheduleError(f"{place}: a function without a body cannot be a payload.")
    return body


def _function(match: re.Match[str], arguments: str, body: str, place: Place) -> str:
    """Return one function on tensors; nothing, if it only calls another one."""
    if "util.call" in body:
        return ""
    tensors = {m["buffer"]: (m["tensor"], m["type"]) for m in _IMPORT.finditer(body)}
    taken = [
        tensors.get(name, (name, kind))
        for name, kind in _ARGUMENT.findall(arguments)
        if kind != "!hal.fence"
    ]
    waited: dict[str, str] = {}
    for barrier in _BARRIER.finditer(body):
        before = _split(barrier["values"])
        name = barrier["result"]
        waited |= {f"{name}#{i}": value for i, value in enumerate(before)} | {name: before[0]}
    exports = {m["buffer"]: (waited.get(m["tensor"], m["tensor"]), m["type"])
               for m in _EXPORT.finditer(body)}  # fmt: skip
    returned = _RETURN.search(body)
    if returned is None:
        raise ScheduleError(f"{place}: the function '{match['name']}' returns nothing.")
    kinds = _split(returned["types"] or "")
    results = [exports.get(value, (value, kind))
               for value, kind in zip(_split(returned["values"]), kinds, strict=False)]  # fmt: skip
    body = _EXPORT.sub("", _BARRIER.sub("", _IMPORT.sub("", body)))
    values, types = (", ".join(words) for words in (zip(*results, strict=True) or ((), ())))
    body = _RETURN.sub(lambda _: f"return {values} : {types}", body)
    visible = "private " if match["visible"] == "private" else ""
    name = match["name"].removesuffix("$async")
    words = ", ".join(f"{value}: {kind}" for value, kind in taken)
    return f"func.func {visible}@{name}({words}) -> ({types}) {{{body}}}"


def _split(text: str) -> list[str]:
    """Split values or types at commas outside of brackets."""
    return [word.strip() for word in re.findall(r"(?:[^,<>]|<[^>]*>)+", text) if word.strip()]


def _plain_module(text: str) -> str:
    """Leave the attributes of the module out, which name devices."""
    code = blanked(text)
    match = _MODULE.search(code)
    if match is None:
        return text
    stop = closing(code, match.end(), Place(Path(), 1)) + 1
    return text[: match.start()] + "module" + text[stop:]

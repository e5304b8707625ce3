"""Schedules are taken apart, linked and decided as text, and mlir-opt accepts what comes out."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from nestor.schedules.kernel.check import check
from nestor.schedules.language import graph
from nestor.schedules.language.decisions import decisions_in, resolved
from nestor.schedules.language.library import PACKAGED, load, packaged
from nestor.schedules.language.linking import decisions_of, link
from nestor.schedules.language.text import Place, ScheduleError
from nestor.schedules.tools import Tools, find_tools

HERE = Place(Path("x.mlir"), 1)
HEAD = "module attributes {transform.with_named_sequence} {\n"


@pytest.fixture(scope="module")
def tools() -> Tools:
    return find_tools()


def write(folder: Path, body: str) -> Path:
    path = folder / "mine.mlir"
    path.write_text(HEAD + body + "\n}\n")
    return path


def test_the_packaged_library_is_right(tools: Tools) -> None:
    assert check(packaged(), tools) == []


def test_pipelines_share_most_of_what_they_do() -> None:
    library = packaged()
    names = [s.name for s in library.pipelines()]
    total = graph.sharing(library, names)
    assert {"matmul", "batch_matmul", "rows", "elementwise", "plain"} <= set(names)
    assert total.operations < total.written_out / 2
    text = graph.as_text(library, names)
    assert f"{100 * total.saved:.0f} % are shared" in text
    guide = Path(__file__).parents[2] / "docs" / "guide" / "schedules.md"
    assert text.splitlines()[-1] in guide.read_text().splitlines()
    assert graph.size(library.sequences["cleanup"]) == 9  # with the patterns, without the sequence
    dot = graph.as_dot(library, names)
    assert '"matmul" -> "lower";' in dot
    picture = ElementTree.fromstring(graph.as_svg(library, names))
    assert sum(part.tag.endswith("rect") for part in picture.iter()) == total.sequences


def test_every_pipeline_says_what_it_does() -> None:
    assert all(s.about.endswith(".") for s in packaged().sequences.values())


def test_a_knob_becomes_a_constant_and_alternatives_the_chosen_region() -> None:
    text = """transform.named_sequence @one(%m: !transform.any_op {transform.readonly}) {
  // transform.tune.knob<"comment"> options = [1] -> !transform.param<i64>
  %size = transform.tune.knob<"size"> = 4 : i64 from options = [2, 4 : i64, 8]
    -> !transform.param<i64>
  %which = transform.tune.alternatives<"way"> -> !transform.any_op {
    transform.yield %m : !transform.any_op
  }, {
    %other = transform.structured.match ops{["func.func"]} in %m
      : (!transform.any_op) -> !transform.any_op
    transform.yield
      %other : !transform.any_op
  }
  transform.print %which : !transform.any_op
}"""
    names = [(d.name, d.options, d.selected) for d in decisions_in(text, HERE)]
    assert names == [("size", (2, 4, 8), 4), ("way", (0, 1), None)]
    out = resolved(text, {"size": 8, "way": 1}, HERE)
    assert "transform.param.constant 8 : i64 -> !transform.param<i64>" in out
    assert "transform.print %other" in out
    assert "alternatives" not in out
    assert out.count("\n") == text.count("\n")  # every line keeps its place
    assert "transform.print %m " in resolved(text, {"way": 0}, HERE)


@pytest.mark.parametrize(
    ("choice", "message"),
    [({}, "x.mlir:1: the decision 'a' has no answer"), ({"a": 3}, "'a' cannot be 3.*1, 2")],
)
def test_a_missing_or_impossible_answer_is_an_error(choice: dict[str, int], message: str) -> None:
    text = '%k = transform.tune.knob<"a"> options = [1, 2] -> !transform.param<i64>'
    with pytest.raises(ScheduleError, match=message):
        resolved(text, choice, HERE)


def test_own_schedules_stand_in_place_of_packaged_ones(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "  transform.named_sequence @plain(%m: !transform.any_op {transform.readonly}) {\n"
        "    transform.yield\n  }",
    )
    assert load([path]).find("plain").place == Place(path, 2)
    with pytest.raises(ScheduleError, match="no schedule 'nothing'; there are plain"):
        load([path]).find("nothing")


FAULTS = {
    "circle": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.readonly}) {\n"
        "transform.include @a failures(propagate) (%m) : (!transform.any_op) -> ()\n"
        "transform.yield\n}",
        2,
        "includes itself: a → a",
    ),
    "missing": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.readonly}) {\n"
        "transform.include @b failures(propagate) (%m) : (!transform.any_op) -> ()\n"
        "transform.yield\n}",
        3,
        "no sequence 'b' to include",
    ),
    "signature": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.readonly}) {\n"
        "transform.include @cleanup failures(propagate) (%m)"
        " : (!transform.any_op) -> !transform.any_op\n"
        "transform.yield\n}",
        3,
        "'cleanup' is included as",
    ),
    "operation": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.readonly}) {\n"
        "\n"
        "transform.no_such_thing %m : !transform.any_op\n"
        "transform.yield\n}",
        4,
        "no_such_thing",
    ),
    "pass": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.consumed}) {\n"
        '%x = transform.apply_registered_pass "no-such-pass" to %m'
        " : (!transform.any_op) -> !transform.any_op\n"
        "transform.yield\n}",
        3,
        "no pass of this name",
    ),
    "option": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.consumed}) {\n"
        '%x = transform.apply_registered_pass "canonicalize" with options = {"no-such" = 1} to %m'
        " : (!transform.any_op) -> !transform.any_op\n"
        "transform.yield\n}",
        3,
        "no such option no-such",
    ),
    "parameter": (
        "transform.named_sequence @a(%m: !transform.any_op {transform.consumed}) {\n"
        '%k = transform.tune.knob<"k"> options = [1] -> !transform.any_param\n'
        "%t, %l = transform.structured.tile_using_for %m tile_sizes [%k]"
        " : (!transform.any_op, !transform.any_param) -> (!transform.any_op, !transform.any_op)\n"
        "transform.yield\n}",
        3,
        "mlir-opt crashes when %k is a size",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds_a_fault_at_its_line(fault: str, tmp_path: Path, tools: Tools) -> None:
    body, line, reason = FAULTS[fault]
    path = write(tmp_path, body)
    # With the packaged library where the fault is in the use of it.
    found = check(load([PACKAGED, path] if fault == "signature" else [path]), tools)
    hits = [d for d in found if d.place == Place(path, line) and reason in d.reason]
    assert hits, [str(d) for d in found]
    assert hits[0].severity == "error"
    assert all(d.place is None or d.place.file == path for d in found if d.severity == "error")


@pytest.mark.parametrize(
    "head",
    [
        "(%m: !transform.any_op {transform.readonly}, %n: !transform.any_op {transform.readonly})",
        "(%m: !transform.any_op {transform.readonly}) -> !transform.any_op",
        "()",
    ],
)
def test_a_step_that_nothing_includes_yet_is_checked(
    head: str, tmp_path: Path, tools: Tools
) -> None:
    result = " %m : !transform.any_op" if "->" in head else ""
    sound = f"transform.named_sequence @a{head} {{\ntransform.yield{result}\n}}"
    assert check(load([write(tmp_path, sound)]), tools) == []
    path = write(tmp_path, sound.replace("{\n", "{\ntransform.no_such_thing\n", 1))
    assert "no_such_thing" in str(check(load([path]), tools)[0])


def test_a_resolved_schedule_can_be_checked(tmp_path: Path, tools: Tools) -> None:
    library = packaged()
    choice = {d.name: d.options[0] for d in decisions_of(library, "rows")}
    path = tmp_path / "resolved.mlir"
    path.write_text(link(library, "rows", choice).text)
    assert check(load([PACKAGED, path]), tools) == []


def test_a_linked_schedule_maps_its_lines_to_the_library() -> None:
    library = packaged()
    choice = {d.name: d.options[-1] for d in decisions_of(library, "rows")}
    linked = link(library, "rows", choice)
    for number, line in enumerate(linked.text.splitlines(), 1):
        if line.strip().startswith("transform.structured.vectorize"):
            place = linked.place_of(number)
            assert place is not None
            assert place.file.read_text().splitlines()[place.line - 1].strip() == line.strip()
            break
    else:
        pytest.fail("the schedule does not vectorise")

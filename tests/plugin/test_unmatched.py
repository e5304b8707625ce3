"""Lines of overrides that match nothing: told by all modules of a program together."""

import pytest

from nestor.evaluate.unmatched import Unmatched, unmatched
from nestor.problem.trajectory import Trajectory
from nestor.problems.inlining_size.search.overrides import Key, parse, parse_comments, to_text
from nestor.problems.inlining_size.search.question_keys import SiteOverrides
from tests.plugin.support import ALWAYS, Workbench

FORM = SiteOverrides()
SOURCES = {
    "widget.cpp": """
        extern "C" int sink(int);
        struct Widget { int a; int area(int) const; int both(int) const; };
        inline int twice(int v) { return sink(v) + sink(2 * v); }
        int Widget::area(int v) const { return twice(v) + a; }
        int Widget::both(int v) const { return area(v) + area(2 * v) + twice(a); }
    """,
    "other.cpp": """
        extern "C" int sink(int);
        static int thrice(int v) { return sink(v) + sink(2 * v) + sink(3 * v); }
        int use_thrice(int v) { return thrice(v) * thrice(v + 1); }
    """,
}


@pytest.fixture
def program(bench: Workbench) -> list[Trajectory]:
    return compile_all(bench, SOURCES)


def compile_all(
    bench: Workbench, sources: dict[str, str], text: str | None = None
) -> list[Trajectory]:
    return [
        bench.compile(
            source, ALWAYS, "-nestor-log-names", overrides=text, log=True, name=name
        ).trajectory
        for name, source in sources.items()
    ]


def all_lines(bench: Workbench, program: list[Trajectory]) -> str:
    """Return a file with a line for every site, callee and module of the program."""
    comments = FORM.describe(bench.plugin.toolchain, program)
    keys = [key for key in comments if key.kind != "site-only"]
    keys += [FORM.unit(log) for log in program]
    return to_text({key: key.kind != "module" for key in keys}, comments)


def found(bench: Workbench, text: str, program: list[Trajectory]) -> tuple[Unmatched, ...]:
    return unmatched(FORM, text, program, bench.plugin.toolchain)


def test_an_intact_program_of_two_modules_has_none(
    bench: Workbench, program: list[Trajectory]
) -> None:
    text = all_lines(bench, program)
    kinds = {key.kind for key in parse(text)}
    assert kinds == {"site", "callee", "module"}
    assert found(bench, text, compile_all(bench, SOURCES, text)) == ()
    # Each module alone leaves lines of the other.
    for log in compile_all(bench, SOURCES, text):
        assert found(bench, text, [log])


def test_a_renamed_class_is_found_under_its_new_name(
    bench: Workbench, program: list[Trajectory]
) -> None:
    text = all_lines(bench, program)
    renamed = {n: s.replace("Widget", "Gadget") for n, s in SOURCES.items()}
    lines = found(bench, text, compile_all(bench, renamed, text))
    comments = parse_comments(text)
    of_class = {key for key, words in comments.items() if "Widget" in words}
    assert {line.key for line in lines} == of_class
    assert of_class
    for line in lines:
        assert line.comment == comments[line.key]
        (best, *_) = line.similar.values()
        assert best == line.comment.replace("Widget", "Gadget")
        assert all(key.kind == line.key.kind for key in line.similar)
        assert len(line.similar) <= 2
        assert not line.similar.keys() & parse(text).keys()


def test_lines_without_comments_are_named_as_well(
    bench: Workbench, program: list[Trajectory]
) -> None:
    gone = {Key("site", 1): True, Key("site-only", 2): False, Key("module", 3): False}
    lines = found(bench, to_text(gone), program)
    assert lines == tuple(Unmatched(key, "", {}) for key in sorted(gone))
    strange = to_text({Key("callee", 4): True}, {Key("callee", 4): "zzz::qqq()"})
    assert found(bench, strange, program) == (Unmatched(Key("callee", 4), "zzz::qqq()", {}),)

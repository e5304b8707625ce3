"""Overrides of register allocation: the text, and what the plugin does with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.compiler.plugin import Plugin
from nestor.corpus.model import Corpus
from nestor.evaluate.unmatched import unmatched
from nestor.problem.overrides import OverridesError
from nestor.problem.registry import find_problem
from nestor.regalloc.overrides import (
    HEADER,
    STOCK,
    Answer,
    Key,
    parse,
    parse_comments,
    parse_key,
    to_text,
)
from nestor.rollout.local_pool import LocalPool
from tests.problems.allocations import compiled, log_of
from tests.problems.conftest import pool_for

NUMBERS = st.integers(0, 2**64 - 1)
QUESTIONS = st.integers(0, 2**32 - 1)
ENTRIES = st.one_of(
    st.tuples(
        st.builds(Key, st.sampled_from(["module", "function"]), NUMBERS, st.just(-1)),
        st.just(STOCK),
    ),
    st.tuples(st.builds(Key, st.just("evict"), NUMBERS, QUESTIONS), st.integers(0, 32)),
    st.tuples(st.builds(Key, st.just("priority"), NUMBERS, QUESTIONS), st.floats(-64, 64)),
)


@given(st.lists(ENTRIES).map(dict))
def test_what_is_written_is_read(overrides: dict[Key, Answer]) -> None:
    text = to_text(overrides, dict.fromkeys(overrides, "f(int)\n"), "two\nlines")
    assert parse(text) == overrides
    assert set(parse_comments(text)) == set(overrides)
    assert all(parse_key(str(key)) == key for key in overrides)


ID = "00000000000000ab"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("evict ab 1 2", "Line 2"),
        (f"evict {ID} 1 33", "Line 2"),
        (f"evict {ID} -1 2", "Line 2"),
        (f"evict {ID} 4294967296 2", "Line 2"),
        (f"priority {ID} 1 64.5", "Line 2"),
        (f"priority {ID} 1 nan", "Line 2"),
        (f"module {ID} inline", "Line 2"),
        (f"function {ID}", "Line 2"),
        (f"evict {ID} 1 2\nevict {ID} 1 3", "Line 3.*given twice"),
    ],
)
def test_malformed_lines_are_refused_by_both(pool: LocalPool, line: str, reason: str) -> None:
    text = f"{HEADER}\n{line}\n"
    with pytest.raises(OverridesError, match=reason):
        parse(text)
    failure = str(compiled(pool, "default", overrides=text).failure)
    assert reason.split(".")[0].lower() in failure


def test_first_line_names_the_format() -> None:
    for text in ("", "# nothing\n", "nestor-overrides 1\n"):
        with pytest.raises(OverridesError, match="first line is not"):
            parse(text)


def test_a_question_is_answered_by_its_line(pool: LocalPool) -> None:
    before = log_of(compiled(pool, "default"))
    several = [n for n in range(len(before)) if before.decisions["rows"][n] > 1]
    row = several[0]
    record = before.decisions[row]
    own = before.question == row
    assert before.candidates is not None
    positions = before.candidates["position"][own].astype(int).tolist()
    other = next(p for p in positions if p != record["default_index"])
    key = Key("evict", int(record["function"]) % 2**64, int(record["question"]))
    after = log_of(compiled(pool, "default", overrides=to_text({key: other})))
    assert after.decisions["index"][row] == other
    assert after.decisions["overridden"].sum() == 1
    assert int((after.answer != after.default).sum()) == 1


def test_priority_is_answered_by_its_line(priority_pool: LocalPool) -> None:
    before = log_of(compiled(priority_pool, "default")).decisions[3]
    key = Key("priority", int(before["function"]) % 2**64, int(before["question"]))
    after = log_of(compiled(priority_pool, "default", overrides=to_text({key: -2.5})))
    assert after.decisions["answer"][3] == -2.5
    assert (after.decisions["answer"] != 0).sum() == 1


def test_stock_modules_and_functions_are_left_to_the_default(pool: LocalPool) -> None:
    stock, log = compiled(pool, None), log_of(compiled(pool, "first"))
    module = to_text({pool.problem.overrides().unit(log): STOCK})
    assert compiled(pool, "first", overrides=module).object == stock.object
    number = int(log.decisions["function"][0]) % 2**64
    one = log_of(compiled(pool, "first", overrides=to_text({Key("function", number): STOCK})))
    own = one.decisions["function"].view("<u8") == number
    assert (one.answer[own] == one.default[own]).all()
    assert (one.answer[~own] != one.default[~own]).any()


def test_what_matches_nothing_is_found(pool: LocalPool) -> None:
    log = log_of(compiled(pool, "default"))
    number, question = (int(log.decisions[name][0]) for name in ("function", "question"))
    sound = {
        Key("module", log.facts["module"]): STOCK,
        Key("function", number % 2**64): STOCK,
        Key("evict", number % 2**64, question): 0,
    }
    lost = {Key("evict", number % 2**64, 10**6): 0, Key("function", 7): STOCK}
    texts = find_problem("regalloc-eviction").overrides()
    text = texts.to_text(sound | lost)
    found = unmatched(texts, text, [log], pool.plugin.toolchain)
    assert {line.key for line in found} == set(lost)
    keys = texts.question_keys([log])
    assert keys.among(texts.index(lost)) == {Key("evict", number % 2**64, 10**6): 0}
    assert set(texts.describe(pool.plugin.toolchain, [log]).values()) >= {"churn"}


@pytest.mark.parametrize(
    ("problem", "policy"),
    [
        ("regalloc-eviction", "first"),
        ("regalloc-eviction", "keep"),
        ("regalloc-eviction", "lowest-density"),
        ("regalloc-eviction", "shipped-eviction"),
        ("regalloc-priority", "heaviest"),
    ],
)
def test_what_a_policy_decided_is_replayed_under_the_default(
    corpus: Corpus, plugin: Plugin, problem: str, policy: str
) -> None:
    """Bit for bit: of the candidates that have a row, lines name the compiler's number."""
    with pool_for(problem, corpus, plugin) as pool:
        before = compiled(pool, policy)
        found = pool.problem.overrides().deviations(plugin.toolchain, log_of(before))
        lines = {key: answer for one in found for key, answer in one.replay.items()}
        after = compiled(pool, "default", overrides=to_text(lines))
    assert lines
    assert log_of(after).answer.tolist() == log_of(before).answer.tolist()
    assert after.object == before.object

"""Overrides: what is written is read again, and what is wrong is named by its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nestor.problem.overrides import OverridesError
from nestor.problems.inlining_size.search.overrides import Key, parse, to_text

numbers = st.integers(0, 2**64 - 1)
keys = st.one_of(
    st.builds(Key, st.sampled_from(["site", "callee"]), numbers),
)


@given(st.dictionaries(keys, st.booleans()), st.text())
def test_what_is_written_is_read(overrides: dict[Key, bool], comment: str) -> None:
    comments = dict.fromkeys(overrides, " ".join(comment.split()))
    assert parse(to_text(overrides, comments, "a title\nof two lines")) == overrides


def test_a_module_is_stock() -> None:
    key = Key("module", 7)
    assert to_text({key: False}).splitlines()[1] == "module 0000000000000007 stock"
    assert parse(to_text({key: False})) == {key: False}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line is not"),
        ("nestor-overrides 2\n", "the first line is not"),
        ("nestor-overrides 1\nsite 12 inline\n", "Line 2"),
        ("nestor-overrides 1\n\nsite 0123456789abcdef maybe\n", "Line 3"),
        ("nestor-overrides 1\nmodule 0123456789abcdef inline\n", "Line 2"),
        ("nestor-overrides 1\nfunction 0123456789abcdef keep\n", "Line 2"),
        ("nestor-overrides 1\n" + "site 0123456789abcdef keep\n" * 2, "given twice"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(OverridesError, match=message):
        parse(text)

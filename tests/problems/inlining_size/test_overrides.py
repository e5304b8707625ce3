"""Overrides: what is written is read again, and what is wrong is named by its line."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nestor.files import ReadError
from nestor.problem.overrides import MOST_BYTES, OverridesError
from nestor.problems.inlining_size.search.overrides import (
    EVERY_MODULE,
    Key,
    load,
    parse,
    parse_comments,
    parse_key,
    to_text,
)

numbers = st.integers(0, 2**64 - 1)
keys = st.one_of(
    st.builds(
        Key, st.sampled_from(["site", "site-only", "callee"]), numbers, st.just(EVERY_MODULE)
    ),
    st.builds(Key, st.sampled_from(["site", "site-only"]), numbers, numbers),
)


@given(st.dictionaries(keys, st.booleans()), st.text())
def test_what_is_written_is_read(overrides: dict[Key, bool], comment: str) -> None:
    comments = dict.fromkeys(overrides, " ".join(comment.split()))
    assert parse(to_text(overrides, comments, "a title\nof two lines")) == overrides


@pytest.mark.parametrize(("word", "answer"), [("stock", False), ("no-summary", True)])
def test_a_module_is_stock_or_has_no_summary(word: str, answer: bool) -> None:
    key = Key("module", 7)
    assert to_text({key: answer}).splitlines()[1] == f"module 0000000000000007 {word}"
    assert parse(to_text({key: answer})) == {key: answer}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first line is not"),
        ("nestor-overrides 2\n", "the first line is not"),
        ("nestor-overrides 1\nsite 12 inline\n", "Line 2"),
        ("nestor-overrides 1\n\nsite 0123456789abcdef maybe\n", "Line 3"),
        ("nestor-overrides 1\nmodule 0123456789abcdef inline\n", "Line 2"),
        ("nestor-overrides 1\nfunction 0123456789abcdef keep\n", "Line 2"),
        ("nestor-overrides 1\nsite-only 0123456789abcdef stock\n", "Line 2"),
        ("nestor-overrides 1\ncallee 0123456789abcdef no-summary\n", "Line 2"),
        # As the plugin, which has no sign, no underscore and no other blanks between words.
        ("nestor-overrides 1\nsite +123456789abcdef keep\n", "Line 2"),
        ("nestor-overrides 1\nsite 0123456789_abcde keep\n", "Line 2"),
        ("nestor-overrides 1\nsite\t0123456789abcdef keep\n", "Line 2"),
        ("nestor-overrides 1\nsite 0123456789abcdef keep\u2028# x\n", "Line 2"),
        ("nestor-overrides 1\nsite 0123456789abcdef keep module 0123456789abcdef stock", "Line 2"),
        ("nestor-overrides 1\n" + "site 0123456789abcdef keep\n" * 2, "given twice"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(OverridesError, match=message):
        parse(text)


def test_blanks_comments_and_letters_are_read_as_by_the_plugin() -> None:
    text = (
        "# first\n\n \tnestor-overrides   1 # x\r\n"
        "\v  site   0123456789ABCDEF  inline# said \u2028 here\r\n"
        "\f\n# nothing\nmodule 0123456789abcdef stock\t"
    )
    number = 0x0123456789ABCDEF
    assert parse(text) == {Key("site", number): True, Key("module", number): False}
    assert parse_comments(text) == {Key("site", number): "said \u2028 here"}


@given(keys)
@example(Key("module", 1))
def test_keys_are_named_by_their_words(key: Key) -> None:
    assert parse_key(str(key)) == key


@pytest.mark.parametrize("words", ["", "site", "site 12", "site 0123456789abcdef keep\nsite 1"])
def test_other_words_are_no_key(words: str) -> None:
    with pytest.raises(OverridesError):
        parse_key(words)


def test_what_no_search_would_write_is_not_read(tmp_path: Path) -> None:
    """Neither a device without an end, nor a pipe without a writer, nor a file of gigabytes."""
    pipe, large, wrong = tmp_path / "pipe", tmp_path / "large", tmp_path / "wrong"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(2 << 30)
    for path in (pipe, large, Path("/dev/zero"), tmp_path):
        with pytest.raises(ReadError, match=str(path)):
            load(path)
    with pytest.raises(OverridesError, match="more than the 16 MiB"):
        parse("nestor-overrides 1\n" + "#" * MOST_BYTES)
    wrong.write_text("nestor-overrides 1\nsite\n")
    with pytest.raises(OverridesError, match=f"{wrong}: Line 2"):
        load(wrong)

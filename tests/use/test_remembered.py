"""The command of the last time is used while it holds, and never when it does not."""

import binascii
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from nestor.cli.use import quick, remembered
from nestor.compiler import plugin as plugins
from nestor.compiler.plugin import Plugin
from nestor.corpus.lto_option import OTHER_LINKER, kind_of_link, kind_of_lto
from nestor.errors import NestorError
from tests.conftest import SOURCE
from tests.use.conftest import by_python, save_policy
from tests.use.test_flags import compiled, flags, run

SLOW: Final = frozenset({"pathlib", "typing", "re", "subprocess", "hashlib", "collections", "json"})
"""What takes milliseconds to import, with all that it imports."""
WORDS: Final = ["clang", "compile", "shipped"]
RESULT: Final = ["/bin/true", "an option", "größe\udcff"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file on which what is remembered depends."""
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "file"
    path.write_text("one")
    absent = str(tmp_path / "absent")
    stamps = remembered.stamps([str(path), absent])
    remembered.remember(WORDS, RESULT, stamps, anywhere=True)
    assert remembered.recall(WORDS) == RESULT
    return path


def _same_size_and_time(path: Path) -> None:
    status = path.stat()
    path.write_text("two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES: Final[dict[str, Callable[[Path], object]]] = {
    "written": lambda path: path.write_text("other"),
    "written with the same size and time": _same_size_and_time,
    "replaced": lambda path: Path(shutil.copy2(path, path.with_name("new"))).replace(path),
    "removed": lambda path: path.unlink(),
    "appeared": lambda path: path.with_name("absent").touch(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_file_forgets(file: Path, change: str) -> None:
    CHANGES[change](file)
    assert remembered.recall(WORDS) is None


def test_who_has_no_home_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in sandboxes, whose users have no name either."""
    for name in ("HOME", "NESTOR_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert remembered.recall(WORDS) is None
    with pytest.raises(NestorError, match=r"no home folder .* NESTOR_CACHE"):
        plugins.cache_folder()


@pytest.mark.parametrize("name", ["PATH", "HOME", "NESTOR_LLVM"])
def test_a_change_of_the_environment_forgets(
    file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert file.exists()
    monkeypatch.setenv(name, "/elsewhere")
    assert remembered.recall(WORDS) is None


@pytest.mark.usefixtures("file")
def test_other_words_are_another_command() -> None:
    for words in (["clang++", *WORDS[1:]], ["clang", "link", "shipped"], WORDS[:2], [*WORDS, ""]):
        assert remembered.recall(words) is None


def test_two_commands_may_share_a_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binascii, "crc32", lambda _: 7)
    stamps = remembered.stamps([str(file)])
    remembered.remember(WORDS, RESULT, stamps, anywhere=True)
    assert remembered.recall([*WORDS[:2], "distilled"]) is None
    remembered.remember([*WORDS[:2], "distilled"], ["other"], stamps, anywhere=True)
    assert remembered.recall(WORDS) is None


def test_a_damaged_record_is_no_command(file: Path, tmp_path: Path) -> None:
    (record,) = (tmp_path / "cache" / "commands").iterdir()
    whole = record.read_bytes()
    for length in range(len(whole)):
        record.write_bytes(whole[:length])
        assert remembered.recall(WORDS) is None
    record.write_bytes(whole)
    assert remembered.recall(WORDS) == RESULT
    assert file.exists()


def test_a_relative_file_is_remembered_for_its_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["flags", "./p"]
    monkeypatch.chdir(tmp_path)
    remembered.remember(words, RESULT, remembered.stamps([str(file)]), anywhere=False)
    assert remembered.recall(words) == RESULT
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert remembered.recall(words) is None


def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setenv("NESTOR_CACHE", str(tmp_path / "cache"))
    remembered.remember(WORDS, RESULT, {}, anywhere=True)
    assert remembered.recall(WORDS) is None


def test_the_last_word_about_lto_counts() -> None:
    assert kind_of_lto(["-flto=thin", "-c"]) == "thin"
    assert kind_of_lto(["-flto=thin", "-flto"]) == "full"
    assert kind_of_lto(["-flto", "-fno-lto"]) == ""
    assert kind_of_lto(["-flto-jobs=2", "-x"]) == ""
    assert kind_of_lto(["-flto=auto"]) == "full"
    assert kind_of_link(["-flto", "-fuse-ld=lld"]) == "full"
    assert kind_of_link(["-flto", "-fuse-ld=lld", "-fuse-ld=bfd"]) == OTHER_LINKER
    assert kind_of_link(["-fuse-ld=bfd"]) == ""


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("words", [["flags", "never"], ["clang", "never", "--", "--version"]])
def test_the_second_start_imports_next_to_nothing(command: Path, words: list[str]) -> None:
    first = run(command, *words)
    done = run(sys.executable, "-X", "importtime", by_python(command), *words)
    assert (done.returncode, done.stdout) == (0, first.stdout)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "nestor.cli.use.quick" in imported
    assert not imported & SLOW
    assert "nestor.cli.main" not in imported


@pytest.mark.usefixtures("plugin")
def test_a_policy_is_remembered_until_it_changes(
    command: Path, plugin: Plugin, tmp_path: Path
) -> None:
    (tmp_path / "x.c").write_text(SOURCE)
    policy = tmp_path / "p.safetensors"
    save_policy(policy, inline=False)
    time.sleep(2.5)  # until its time tells a change for certain
    names = ("clang", "compile", str(policy))
    assert remembered_by(command, *names) is None
    wrapper = (command, "clang", policy, "--")
    never = compiled(*wrapper, cwd=tmp_path)
    assert remembered_by(command, *names) is not None
    assert compiled(*wrapper, cwd=tmp_path) == never
    save_policy(policy, inline=True)
    os.utime(policy, (time.time() + 1000,) * 2)
    always = compiled(*wrapper, cwd=tmp_path)
    assert always != never
    assert always == compiled(plugin.toolchain.clang, *flags(command, policy), cwd=tmp_path)
    assert remembered_by(command, *names) is None, "too new to be trusted"


def remembered_by(command: Path, *words: str) -> str | None:
    """Return what the process of ``command`` would remember."""
    script = (
        f"import sys; sys.path.insert(0, {str(Path(quick.__file__).parents[3])!r});"
        "from nestor.cli.use.remembered import recall; print(recall(sys.argv[1:]) or '')"
    )
    assert command.exists()
    return run(sys.executable, "-c", script, *words).stdout.strip() or None


@pytest.mark.usefixtures("plugin")
def test_what_the_cache_lost_is_made_again(
    command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(plugins.cache_folder() / "plugins", cache / "plugins")
    monkeypatch.setenv("NESTOR_CACHE", str(cache))
    first = flags(command, "never")
    shutil.rmtree(cache / "policies")
    assert flags(command, "never") == first
    assert list((cache / "policies").iterdir())


@pytest.mark.usefixtures("plugin")
def test_many_compiles_at_once_in_an_empty_cache(
    command: Path, plugin: Plugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    shutil.copytree(plugins.cache_folder() / "plugins", cache / "plugins")
    monkeypatch.setenv("NESTOR_CACHE", str(cache))
    (tmp_path / "x.c").write_text(SOURCE)
    words = [str(command), "clang", "never", "--", "-Oz", "-c", "x.c", "-o"]
    started = [subprocess.Popen([*words, f"{n}.o"], cwd=tmp_path) for n in range(6)]
    assert [process.wait() for process in started] == [0] * 6
    expected = compiled(plugin.toolchain.clang, *flags(command, "never"), cwd=tmp_path)
    assert {(tmp_path / f"{n}.o").read_bytes() for n in range(6)} == {expected}


@pytest.mark.usefixtures("plugin")
def test_output_that_cannot_be_written_is_one_sentence(command: Path) -> None:
    flags(command, "-q", "default")  # remembered from now on
    with Path("/dev/full").open("w") as full:
        line = [str(command), "flags", "default"]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("nestor: ")
    assert done.stderr.endswith("no space left on device.\n")
    assert done.stderr.count("\n") == 1

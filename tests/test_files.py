"""Files that may be anything: reading never waits or goes beyond a limit, and no device goes."""

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from nestor.corpus.model import Corpus
from nestor.errors import NestorError
from nestor.files import (
    ReadError,
    claimed,
    read_regular,
    read_regular_text,
    refuse_folder,
    refuse_place,
    write_atomically,
)

LIMIT = 1000


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """A folder with a file of every kind that is not to be read."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2 << 30)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "larger").write_bytes(b"x" * (LIMIT + 1))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pipe", "it is a named pipe; name a regular file of at most 1,000 bytes"),
        ("sparse", "it is larger than 1,000 bytes; name"),
        ("socket", "No such device or address"),
        ("zero", "it is a device; name"),
        ("folder", "it is a folder; name"),
        ("larger", "it is larger than 1,000 bytes; name"),
        ("absent", "No such file or directory."),
        ("larger/below", "Not a directory."),
        ("nul\0", "embedded null byte"),
    ],
)
def test_refused(strange: Path, name: str, why: str) -> None:
    path = strange / name
    with pytest.raises(ReadError) as caught:
        read_regular(path, "a list", limit=LIMIT)
    assert str(caught.value).startswith(f"{path} cannot be read as a list: {why}")
    assert caught.value.absent == (name == "absent")


def test_remedy_of_the_caller(strange: Path) -> None:
    with pytest.raises(ReadError, match=r"a named pipe; 'nestor summary' makes one\.$"):
        read_regular(strange / "pipe", "a summary", remedy="'nestor summary' makes one")
    with pytest.raises(ReadError, match=r"No such file or directory; 'nestor summary' makes one"):
        read_regular(strange / "absent", "a summary", remedy="'nestor summary' makes one")


def test_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * LIMIT)
    assert read_regular(path, "a list", limit=LIMIT) == b"x" * LIMIT
    path.write_bytes("ä".encode() + b"\xff\n")
    assert read_regular_text(path, "a list") == "ä\ufffd\n"
    # A file that does not say its size.
    assert b"Name:" in read_regular(Path("/proc/self/status"), "a status")


@pytest.mark.parametrize("name", ["pipe", "sparse", "zero"])
def test_overrides_of_a_command(strange: Path, name: str) -> None:
    """The command says what is wrong at once, in little memory."""
    file = strange / name
    words = ["evaluate", "--policy", "default", "--corpus", "x", "--overrides", str(file)]

    def little_memory() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    done = subprocess.run(
        [sys.executable, "-m", "nestor", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=little_memory,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"nestor: {file} cannot be read as overrides: it is ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pipe", "a named pipe"),
        ("zero", "a device"),
        ("folder", "a folder"),
        ("socket", "a socket"),
        (".", "a folder"),
    ],
)
def test_what_is_no_file_stays_where_it_is(strange: Path, name: str, kind: str) -> None:
    """As root a rename would put a file in the place of /dev/null."""
    before = (strange / name).stat().st_ino
    with pytest.raises(NestorError, match=f"{name} is {kind}: name a file to write"):
        refuse_place(strange / name)
    with pytest.raises(IsADirectoryError, match=f"it is {kind}"):
        write_atomically(strange / name, "text")
    assert (strange / name).stat().st_ino == before
    assert not list(strange.glob(".*.part"))


def test_no_link_in_dev_is_replaced() -> None:
    with pytest.raises(NestorError, match="/dev/stdout is a device"):
        refuse_place(Path("/dev/stdout"))


def test_a_place_below_a_file_or_a_read_only_folder_is_refused(strange: Path) -> None:
    with pytest.raises(NestorError, match=f"cannot be written: {strange / 'larger'} is a file"):
        refuse_place(strange / "larger" / "new" / "file")
    with pytest.raises(NestorError, match="the folder /proc/self is read-only"):
        refuse_place(Path("/proc/self/new"))
    refuse_place(strange / "larger")
    refuse_place(strange / "new" / "new")
    refuse_place(Path("new"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("pipe", "it is a named pipe; name a folder"),
        ("zero", "it is a device; name a folder"),
        ("larger", "it is a file; name a folder"),
        ("nowhere", "it is a link to nothing; name a folder"),
        ("larger/new", "cannot be written: .*larger is a file; name another place"),
        ("pipe/new/new", "cannot be written: .*pipe is a named pipe; name another place"),
        ("read-only", "the folder .*read-only is read-only"),
        ("read-only/new", "the folder .*read-only is read-only"),
    ],
)
def test_a_folder_that_cannot_be_made_or_written_is_refused(
    strange: Path, name: str, why: str
) -> None:
    (strange / "nowhere").symlink_to("absent")
    (strange / "read-only").symlink_to("/proc/self")
    with pytest.raises(NestorError, match=why):
        refuse_folder(strange / name)
    with pytest.raises(NestorError, match=why), claimed(strange / name):
        pass


def test_a_folder_that_can_be_written_is_taken(strange: Path) -> None:
    for name in ("folder", "new", "new/new"):
        refuse_folder(strange / name)
    assert not (strange / "new").exists()


def test_a_run_folder_with_pipes_in_it(small_corpus: Corpus, tmp_path: Path) -> None:
    """What a run has kept is read without waiting, too."""
    out = tmp_path / "run"
    out.mkdir()
    os.mkfifo(out / "search.json")
    os.mkfifo(out / "checkpoint.safetensors")
    words = ["--corpus", str(small_corpus.root), "--out", str(out)]
    for command, file in (
        (["tune", "one"], "search.json"),
        (["train", "inlining-size", "--learner", "bc"], "checkpoint.safetensors"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "nestor", *command, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 1
        last = done.stderr.splitlines()[-1]
        assert last.startswith(f"nestor: {out / file} cannot be read as a")
        assert "it is a named pipe" in last


def test_a_folder_that_was_claimed_in_vain_goes_away(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="refused"), claimed(out):
        raise ValueError("refused")
    assert not out.exists()
    with claimed(out):
        (out / "result").touch()
    with claimed(out):
        pass
    assert (out / "result").exists()

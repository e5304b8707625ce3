"""What all tests share: a real toolchain, its plugin, and real corpora."""

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from nestor.compiler.plugin import Plugin, ensure_plugin
from nestor.compiler.releases import TESTED
from nestor.compiler.toolchain import Toolchain, discover, find
from nestor.corpus import store
from nestor.corpus.capture import merge
from nestor.corpus.capture.build import Wrappers
from nestor.corpus.capture.journal import Journal
from nestor.corpus.fetch.fetch import fetch
from nestor.corpus.fetch.tiers import recipes
from nestor.corpus.layout import JOURNAL
from nestor.corpus.level import DEFAULT_LEVEL, Level
from nestor.corpus.model import Corpus, Module

# The same examples each time, however busy the machine is.
settings.register_profile("nestor", deadline=None, derandomize=True)
settings.load_profile("nestor")

ROOT = Path(__file__).parent.parent

# What is ignored is inherited by the commands that tests interrupt: SIGHUP under nohup, SIGINT in a
# shell's background. What is handled is not; and the tests themselves go on when a terminal closes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# Nor do they depend on the make that started them: a make within another says where it works.
for variable in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
    os.environ.pop(variable, None)

# Begun first: a worker that ends with one of these files leaves the others idle for minutes.
LONGEST = (
    "release/test_plugin.py",
    "cost/test_untrained_opcodes.py",
    "use/test_build_systems.py",
    "native/test_native.py",
    "plugin/test_agreement.py",
    "plugin/test_releases.py",
    "plugin/test_site_features.py",
    "corpus/test_corpus_codegen.py",
    "use/test_make.py",
    "use/test_make_systems.py",
    "use/test_make_selection.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = [ROOT / "tests" / name for name in LONGEST]
    assert all(place.is_file() for place in places), "a file of LONGEST has another name"
    order = {place: number for number, place in enumerate(places)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


# Small, but with real decisions: static functions, one use or many, a loop, a call chain.
SOURCE = """
static int step(int v) { return v * 3 + 1; }
static int walk(int n) { int s = 0; for (int i = 0; i < n; ++i) s += step(i) ^ step(s); return s; }
int twice(int n) { return walk(n) + walk(n + 1); }
int main(int argc, char **argv) { (void)argv; return twice(argc) & 1; }
"""


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The LLVM of this machine."""
    return find()


@pytest.fixture(scope="session")
def plugin(toolchain: Toolchain) -> Plugin:
    """Its plugin, built once for all workers."""
    return ensure_plugin(toolchain)


@pytest.fixture(scope="session")
def older_plugin() -> Plugin:
    """The plugin for the oldest release that is tested; tests skip where it is not installed."""
    return plugin_of(min(TESTED))


def plugin_of(release: int) -> Plugin:
    """Return the plugin for a release of LLVM, or skip the test if it is not on this machine."""
    found = [toolchain for toolchain in discover() if toolchain.major == release]
    if not found:
        packages = f"clang-{release} llvm-{release}-dev lld-{release}"
        pytest.skip(f"LLVM {release} is not installed (Debian: apt-get install {packages})")
    return ensure_plugin(found[0])


@pytest.fixture(scope="session")
def tiny_corpus(toolchain: Toolchain) -> Corpus:
    """The tiny corpus; fetched from the Debian archive by whichever worker comes first."""
    return _tiny(toolchain, os.environ.get("NESTOR_TEST_CORPUS"), "tiny", DEFAULT_LEVEL)


@pytest.fixture(scope="session")
def tiny_speed_corpus(toolchain: Toolchain) -> Corpus:
    """The tiny corpus at -O2, fetched in the same way."""
    return _tiny(toolchain, os.environ.get("NESTOR_TEST_SPEED_CORPUS"), "tiny-O2", "-O2")


def _tiny(toolchain: Toolchain, named: str | None, name: str, level: Level) -> Corpus:
    folder = Path(named) if named else ROOT / ".nestor" / name
    if not named:
        folder.parent.mkdir(exist_ok=True)
        with (folder.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = fetch(recipes("tiny"), folder, toolchain, level=level)
        assert not result.missing, f"the archive does not have {result.missing}"
    return store.load(folder)


@pytest.fixture
def small_corpus(tmp_path: Path, toolchain: Toolchain) -> Corpus:
    """A corpus of two modules and two programs, captured from a real build."""
    return make_corpus(tmp_path / "corpus", toolchain, {"one": SOURCE, "two": SOURCE + "int x;"})


def make_corpus(
    root: Path,
    toolchain: Toolchain,
    sources: Mapping[str, str],
    builds: Mapping[str, tuple[Path, str]] | None = None,
    level: Level = DEFAULT_LEVEL,
) -> Corpus:
    """Capture one project and program per source, and per folder with its makefile's text.

    :param sources: texts by name; those whose name ends with .cpp are C++, all others C.
    """
    folders = dict(builds or {})
    for source, text in sources.items():
        name = source.removesuffix(".cpp")
        file, compiler = (f"{name}.c", "CC") if name == source else (source, "CXX")
        work = root.parent / "sources" / name
        work.mkdir(parents=True)
        (work / file).write_text(text)
        folders[name] = (
            work,
            f"{name}: {name}.o\n\t$({compiler}) -o $@ $^\n"
            f"{name}.o: {file}\n\t$({compiler}) -O2 -c $<\n",
        )
    for name, (work, makefile) in folders.items():
        (work / "Makefile").write_text(makefile)
        folder = root / JOURNAL / "bin"
        wrappers = Wrappers(toolchain, folder, root, name, work, level).write()
        subprocess.run(
            ["make"], cwd=work, env=wrappers.environment(), check=True, capture_output=True
        )
    return merge.finalise(root, Journal(root / JOURNAL), toolchain=toolchain.version)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB with nothing left on it."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount the small file system that this test fills")
    try:
        with (folder / "ballast").open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(b"\0" * 4096)
            except OSError:
                pass
        yield folder
    finally:
        # Lazily: the lock of a run folder may still be open there.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def module_named(corpus: Corpus, part: str) -> Module:
    """Return the one module whose name contains ``part``."""
    (found,) = [m for m in corpus.modules if part in m.name]
    return found

"""Source packages captured by their own builds: a tree as Debian's, with the real compilers."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from nestor.cli.main import main
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import store
from nestor.corpus.packages import fetch_packages as fetching
from nestor.corpus.packages import sources
from nestor.corpus.packages.failure import Failure, Reason
from nestor.corpus.packages.fetch_packages import PackageSettings, fetch_packages
from nestor.corpus.packages.package_build import PackageLimits
from nestor.corpus.relink import link_command

pytestmark = pytest.mark.skipif(
    any(shutil.which(tool) is None for tool in ("dpkg-buildpackage", "g++", "make")),
    reason="needs dpkg-dev, g++ and make",
)

CONTROL = """Source: demo
Section: misc
Priority: optional
Maintainer: Somebody <somebody@example.org>
Build-Depends: {depends}
Standards-Version: 4.6.0

Package: demo
Architecture: any
Description: test
 Nothing else.
"""
CHANGELOG = """demo (1.2-3) unstable; urgency=low

  * Test.

 -- Somebody <somebody@example.org>  Sat, 01 Jan 2022 00:00:00 +0000
"""
# Hard-coded compilers with and without a prefix, and options that only gcc has.
RULES = """build-arch:
\tx86_64-linux-gnu-g++ -O2 -fPIC -fconserve-stack -fno-gnu-unique -c twice.cpp
\tg++ -shared -Wl,-soname,libtwice.so.1 twice.o -o libtwice.so.1
\tg++ -O2 -Werror -Wall -c main.cpp
\tg++ main.o libtwice.so.1 -o prog
\tgcc -O2 other.c -o other
binary-arch clean:
"""
MAIN = """#include <vector>
int twice(int);
int main() { int unused; std::vector<int> v{1, 2}; return twice(v[1]) - 4; }
"""
TWICE = "int twice(int x) { return 2 * x; }\n"
OTHER = "int main(void) { return 0; }\n"


def _package(folder: Path, rules: str = RULES, depends: str = "make", **files: str) -> Path:
    """Write a tree of sources as Debian unpacks them."""
    texts = {
        "debian/control": CONTROL.format(depends=depends),
        "debian/changelog": CHANGELOG,
        "debian/rules": f"#!/usr/bin/make -f\n{rules}",
        "main.cpp": MAIN,
        "twice.cpp": TWICE,
        "other.c": OTHER,
        **files,
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def _failure(package: Path, root: Path, toolchain: Toolchain, **limits: float) -> Failure:
    settings = PackageSettings(limits=PackageLimits(**limits))
    result = fetch_packages([str(package)], root, toolchain, settings)
    assert store.load(root).missing == result.corpus.missing
    (failure,) = result.failures
    return failure


def test_a_build_that_hard_codes_gcc_is_captured(tmp_path: Path, toolchain: Toolchain) -> None:
    package, root = _package(tmp_path / "demo"), tmp_path / "corpus"
    result = fetch_packages([str(package)], root, toolchain, PackageSettings(split="validation"))
    assert (result.built, result.failures, result.installed) == ((str(package),), (), ())
    assert not (package / "prog").exists()  # the user's folder is left alone
    corpus = store.load(root)
    store.verify(corpus)
    (project,) = corpus.projects
    assert (project.name, project.version, project.split) == ("demo", "1.2-3", "validation")
    assert [m.name for m in corpus.modules] == ["demo/main.o", "demo/other.o", "demo/twice.o"]
    assert [p.name for p in corpus.programs] == ["demo/libtwice.so.1", "demo/other", "demo/prog"]
    # The program uses the library as a library; the library's own code is judged by itself.
    assert corpus.program("demo/prog").modules == ("demo/main.o",)
    assert corpus.program("demo/libtwice.so.1").modules == ("demo/twice.o",)
    shared = corpus.program("demo/libtwice.so.1")
    command = link_command(toolchain, corpus, shared, {"demo/twice.o": root}, tmp_path / "x")
    assert "-shared" in command
    again = fetch_packages([str(package)], root, toolchain)
    assert (again.present, again.built) == ((str(package),), ())
    assert again.corpus == corpus


def test_what_clang_refuses_the_systems_compiler_compiles(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    # Nested functions are gcc's alone.
    nested = "int h(int x) { int g(int y) { return x + y; } return g(1); }\n"
    uses = "int h(int); int main(void) { return h(1) - 2; }\n"
    rules = "build-arch:\n\tgcc -c h.c\n\tgcc -c uses.c\n\tgcc h.o uses.o -o uses\n"
    files = {"h.c": '#include "h.h"\n', "h.h": nested, "uses.c": uses}
    package = _package(tmp_path / "demo", rules, **files)
    corpus = fetch_packages([str(package)], tmp_path / "corpus", toolchain).corpus
    (program,) = corpus.programs
    assert program.modules == ("demo/uses.o",)
    assert sum(item.kind == "foreign" for item in program.inputs) == 1
    assert [m.project for m in corpus.missing] == ["demo"]
    assert corpus.missing[0].reason.startswith("h.c: ")
    assert "error: function definition is not allowed here" in corpus.missing[0].reason


def test_a_configure_test_hears_of_clang(tmp_path: Path, toolchain: Toolchain) -> None:
    """An option that only gcc has must not be found, or every file would be refused once."""
    rules = (
        "build-arch:\n\techo 'int x;' > conftest.c\n"
        "\tif gcc -fconserve-stack -c conftest.c; then exit 1; fi\n"
        "\tif gcc -Werror -Wno-such-warning-x -c conftest.c; then exit 1; fi\n"
        "\tgcc other.c -o other\n"
    )
    package = _package(tmp_path / "demo", rules)
    result = fetch_packages([str(package)], tmp_path / "corpus", toolchain)
    assert result.failures == ()


@pytest.mark.parametrize(
    ("rules", "reason", "detail"),
    [
        ("build-arch:\n\tgcc -c main.cpp broken.c\n", "build failed", "broken.c"),
        ("build-arch:\n\ttrue\n", "no modules", "compiled nothing"),
        ("build-arch:\n\tg++ -c main.cpp\n", "no program", "linked nothing"),
        ("build-arch:\n\tsleep 60\n", "too long", "more than 0.02 minutes"),
        ("build-arch:\n\thead -c 20M /dev/zero > big\n", "too big", "more than 0.01 GiB"),
    ],
)
def test_reasons(
    tmp_path: Path, toolchain: Toolchain, rules: str, reason: Reason, detail: str
) -> None:
    limits = {"too long": {"minutes": 0.02}, "too big": {"gigabytes": 0.01}}.get(reason, {})
    failure = _failure(_package(tmp_path / "demo", rules), tmp_path / "corpus", toolchain, **limits)
    assert (failure.reason, failure.partial) == (reason, False)
    assert detail in failure.detail


def test_sources_and_dependencies_that_cannot_be_had(
    tmp_path: Path, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "corpus"
    (tmp_path / "plain").mkdir()
    assert _failure(tmp_path / "plain", root, toolchain).reason == "no source"
    (tmp_path / "bad.dsc").write_text("no description")
    assert _failure(tmp_path / "bad.dsc", root, toolchain).reason == "no source"
    needy = _package(tmp_path / "needy", depends="make, no-such-package-of-ours")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    failure = _failure(needy, root, toolchain)
    assert failure.reason == "build dependencies"
    assert "no-such-package-of-ours" in failure.detail
    assert "only root" in failure.detail
    assert sources.version_of(tmp_path / "plain") == ""


def test_a_build_that_fails_late_leaves_its_programs(tmp_path: Path, toolchain: Toolchain) -> None:
    package = _package(tmp_path / "demo", RULES.replace("binary-arch", "\tfalse\nbinary-arch"))
    # Another package of the same code shares its modules and is complete all the same.
    good = _package(tmp_path / "good")
    result = fetch_packages([str(package), str(good)], tmp_path / "corpus", toolchain)
    (failure,) = result.failures
    assert (failure.reason, failure.partial) == ("build failed", True)
    assert result.built == (str(package), str(good))
    assert len(result.corpus.programs_of_project("demo")) == 3
    assert len(result.corpus.programs_of_project("good")) == 3


def test_a_program_that_cannot_be_linked_again_is_left_out(
    tmp_path: Path, toolchain: Toolchain
) -> None:
    # What a linker script defines is not part of a corpus.
    needs = "extern int defined; int main(void) { return defined; }\n"
    rules = "build-arch:\n\tgcc -c needs.c\n\tgcc needs.o -Wl,--defsym,defined=1 -o needs\n{}"
    lone = _package(tmp_path / "lone", rules.format(""), **{"needs.c": needs})
    failure = _failure(lone, tmp_path / "corpus", toolchain)
    assert (failure.reason, failure.partial) == ("link fails again", False)
    assert "defined" in failure.detail
    both = _package(tmp_path / "both", rules.format("\tgcc other.c -o other\n"))
    (both / "needs.c").write_text(needs)
    failure = _failure(both, tmp_path / "corpus", toolchain)
    assert (failure.reason, failure.partial) == ("link fails again", True)
    programs = store.load(tmp_path / "corpus").programs
    assert [p.name for p in programs] == ["both/other"]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = _package(tmp_path / "good"), _package(tmp_path / "bad", "build-arch:\n\tfalse\n")
    words = ["corpus", "fetch", "--package", str(good), str(bad), str(tmp_path / "corpus")]
    assert main([*words, "--json", "--logs", str(tmp_path / "logs")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["fetched"] == [str(good)]
    assert printed["reasons"] == {"build failed": 1}
    assert [f["package"] for f in printed["failures"]] == [str(bad)]
    assert "g++" in (tmp_path / "logs" / "good.log").read_text()
    assert main(["corpus", "fetch", "--package", str(bad), str(tmp_path / "corpus")]) == 1
    assert "build failed" in capsys.readouterr().out
    assert main(["corpus", "fetch", "--package", str(bad)]) == 2
    assert main(["corpus", "fetch", "no-tier", str(tmp_path / "x")]) == 2
    assert "tiny" in capsys.readouterr().err


def test_another_compiler_builds_packages_again(toolchain: Toolchain) -> None:
    settings = PackageSettings()
    other = replace(toolchain, version="0.0")
    first = fetching.package_digest("x", toolchain, settings)
    assert first != fetching.package_digest("x", other, settings)
    assert first != fetching.package_digest("x", toolchain, replace(settings, level="-O2"))
    assert fetching.project_name("./some/demo_1.2-3.dsc") == "demo"

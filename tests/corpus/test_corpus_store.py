"""The store: what is written is read, and nothing hostile gets through."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nestor.compiler.options import is_safe_link_option, safe_cc1
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import exchange, store
from nestor.corpus.model import Corpus, CorpusError, Input, Module, Program, Project
from nestor.corpus.relink import link_command
from nestor.files import write_atomically

OPTIONS = ("-cc1", "-triple", "x86_64-pc-linux-gnu", "-emit-obj", "-Oz", "-ffunction-sections")


def _corpus(root: Path) -> Corpus:
    """Write a corpus of two modules; to the store bitcode is just bytes."""
    modules = []
    for name, content in (("p/a.o", b"BC one"), ("p/sub/b.o", b"BC two")):
        digest = hashlib.sha256(content).hexdigest()
        write_atomically(root / f"{name}.bc", content)
        write_atomically(root / f"{name}.cmd", "\0".join(OPTIONS).encode())
        modules.append(Module(name, "p", "c", digest, OPTIONS))
    inputs = (Input("module", "p/a.o"), Input("option", "-lm"))
    program = Program("p/prog", "p", "c", inputs, ("--version",))
    project = Project("p", "1.0", "MIT", (("p.tar.gz", "0" * 64),), "test")
    corpus = Corpus(root, tuple(modules), (program,), (project,), (), "22.1.8")
    store.save(corpus)
    return corpus


def test_round_trip(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path)
    loaded = store.load(tmp_path)
    assert loaded == corpus
    assert loaded.digest == corpus.digest
    store.verify(loaded)


def test_digest_sees_everything_that_matters(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path)
    first = corpus.modules[0]
    variants = [
        replace(corpus, modules=(replace(first, digest="0" * 64), corpus.modules[1])),
        replace(corpus, modules=(replace(first, options=("-cc1",)), corpus.modules[1])),
        replace(corpus, programs=()),
        replace(corpus, projects=(Project("p", split="train"),)),
    ]
    assert len({v.digest for v in [corpus, *variants]}) == len(variants) + 1
    assert replace(corpus, root=tmp_path / "elsewhere").digest == corpus.digest


def test_import_and_export(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path / "ours")
    exchange.export(corpus, tmp_path / "plain")
    assert sorted(p.name for p in (tmp_path / "plain").iterdir()) == [
        "corpus_description.json", "p",
    ]  # fmt: skip
    plain = store.load(tmp_path / "plain")
    assert plain.modules == corpus.modules
    assert plain.programs == ()
    back = exchange.import_(tmp_path / "plain", tmp_path / "back")
    assert store.load(tmp_path / "back").modules == back.modules == corpus.modules
    full = exchange.import_(tmp_path / "ours", tmp_path / "copy")
    assert full.digest == corpus.digest
    with pytest.raises(CorpusError, match="not empty"):
        exchange.export(corpus, tmp_path / "plain")


def test_plain_layout_with_override_and_thinlto(tmp_path: Path) -> None:
    (tmp_path / "x.o.bc").write_bytes(b"BC")
    description: dict[str, Any] = {"modules": ["x.o"], "has_thinlto": True}
    description["global_command_override"] = [
        "-cc1", "-O3", "-x", "ir", "{context.module_full_path}", "-load", "evil.so",
    ]  # fmt: skip
    (tmp_path / "corpus_description.json").write_text(json.dumps(description))
    corpus = store.load(tmp_path)
    assert corpus.modules[0].options == ("-cc1", "-O3", "-emit-obj")
    assert corpus.modules[0].project == tmp_path.name
    assert corpus.dropped_options == 1
    del description["global_command_override"]
    (tmp_path / "corpus_description.json").write_text(json.dumps(description))
    with pytest.raises(CorpusError, match=r"x\.o\.cmd"):
        store.load(tmp_path)


HOSTILE_NAMES = [
    "../x", "/etc/passwd", "a/../../x", "", ".", "a//b", "a/./b", "a\0b", "a\nb", "link/x",
    ".journal/x", "x" * 2000, 7, None, "a\\b",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_stay_in_the_folder(tmp_path: Path, name: object) -> None:
    root = tmp_path / "corpus"
    _corpus(root)
    (root / "link").symlink_to(tmp_path)
    manifest = json.loads((root / "manifest.json").read_text())
    manifest["modules"][0]["name"] = name
    (root / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CorpusError):
        store.load(root)
    (root / "manifest.json").unlink()
    (root / "corpus_description.json").write_text(json.dumps({"modules": [name]}))
    with pytest.raises(CorpusError):
        store.load(root)


def _set(*path: Any) -> Callable[[Any], None]:
    *keys, last, value = path

    def change(manifest: Any) -> None:
        for key in keys:
            manifest = manifest[key]
        manifest[last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("nestor_corpus", 2),
        _set("modules", 7),
        _set("modules", 0, None),
        _set("modules", 0, "digest", "xyz"),
        _set("modules", 0, "language", "fortran"),
        _set("modules", 0, "project", "unknown"),
        _set("modules", 0, "name", "p/sub/b.o"),
        _set("programs", 0, "inputs", [["module", "p/none.o"]]),
        _set("programs", 0, "inputs", [["plugin", "x"]]),
        _set("programs", 0, "inputs", [["option", "-Wl,--end-lib"]]),
        _set("programs", 0, "inputs", [["option", "-Wl,--start-lib"]]),
        _set("programs", 0, "inputs", [["option", "-fuse-ld=/tmp/evil"]]),
        _set("programs", 0, "inputs", [["option", "@/tmp/response"]]),
        _set("programs", 0, "inputs", [["foreign", "../../etc/passwd"]]),
        _set("programs", 0, "inputs", [["module"]]),
        _set("programs", 0, "smoke", [3]),
        _set("projects", 0, "split", "holdout"),
        _set("projects", 0, "dropped_options", -1),
        _set("projects", 0, "style", 3),
        _set("projects", 0, "inputs", {"../x": "0" * 64}),
        _set("projects", 0, "inputs", {"..": "0" * 64}),
        _set("projects", 0, "inputs", {"x": "../../etc/passwd"}),
        _set("projects", {}),
        _set("missing", "x"),
    ],
)
def test_damaged_manifests_are_refused(tmp_path: Path, change: Callable[[Any], None]) -> None:
    _corpus(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    change(manifest)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CorpusError):
        store.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000, '{"nestor_corpus": 1', "\xff"])
def test_broken_json_is_refused(tmp_path: Path, text: str) -> None:
    _corpus(tmp_path)
    (tmp_path / "manifest.json").write_text(text, encoding="latin-1")
    with pytest.raises(CorpusError):
        store.load(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(CorpusError, match="nestor corpus"):
            store.load(folder)


def test_verify_notices_a_changed_file(tmp_path: Path) -> None:
    corpus = _corpus(tmp_path)
    (tmp_path / "p/a.o.bc").write_bytes(b"BC something else")
    with pytest.raises(CorpusError, match=r"a\.o\.bc"):
        store.verify(corpus)
    (tmp_path / "p/a.o.bc").unlink()
    with pytest.raises(CorpusError, match=r"a\.o\.bc"):
        store.verify(corpus)


UNSAFE = [
    ["-load", "/tmp/evil.so"],
    ["-fplugin=/tmp/evil.so"],
    ["-fpass-plugin=/tmp/evil.so"],
    ["-mllvm", "-load=/tmp/evil.so"],
    ["-plugin", "x"],
    ["-add-plugin", "x"],
    ["@/tmp/response"],
    ["-dependency-file", "/etc/x"],
    ["-o", "/etc/x"],
    ["-ftime-trace=/etc/x"],
    ["-stats-file=/etc/x"],
    ["-opt-record-file", "/etc/x"],
    ["-split-dwarf-output", "/etc/x"],
    ["-serialize-diagnostic-file", "/etc/x"],
    ["-header-include-file", "/etc/x"],
    ["-fprofile-instrument-path=/etc/x"],
    ["-resource-dir", "/tmp"],
    ["-include-pch", "/tmp/x"],
    ["-target-cpu", "/etc/passwd"],
    ["-target-cpu", "@x"],
    ["-triple", "x y"],
    ["-S"],
    ["-E"],
    ["-fsanitize=address"],
    ["-main-file-name", "-load"],
    ["/etc/passwd"],
    ["-emit-llvm-bc"],
    ["-foo\n-load"],
    ["-Oz\n"],
]


@pytest.mark.parametrize("words", UNSAFE)
def test_unsafe_cc1_options_do_not_get_through(tmp_path: Path, words: list[str]) -> None:
    assert safe_cc1([*OPTIONS, *words]).kept == OPTIONS
    assert safe_cc1([*words, *OPTIONS]).kept == OPTIONS
    _corpus(tmp_path)
    (tmp_path / "p/a.o.cmd").write_bytes("\0".join([*OPTIONS, *words]).encode())
    assert store.load(tmp_path).module("p/a.o").options == OPTIONS


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    assert safe_cc1([*OPTIONS, "-I", "include", "-DX=1", "-std=c99", "-pthread"]).dropped == 0
    assert safe_cc1([*OPTIONS, "-fsanitize=address", "-mllvm", "-y"]).dropped == 3
    _corpus(tmp_path)
    (tmp_path / "p/a.o.cmd").write_bytes(b"-cc1\0-fplugin=x")
    assert store.load(tmp_path).dropped_options == 1


@pytest.mark.parametrize(
    "option",
    [
        "-l/tmp/x", "-l../x", "-l:../x.a", "-Wl,--plugin=x", "-Wl,-rpath,/tmp", "-T", "x.ld",
        "-fuse-ld=/tmp/ld", "-B/tmp", "@x", "-Wl,@x", "-o", "/tmp/x", "-Wl,-o,/tmp/x", "-lm\n",
        "-Wl,--as-needed,-o,/x", "-Xlinker", "-fplugin=x", "-L/tmp", "--ld-path=/tmp/x",
        "-Wl,-dynamic-linker,/tmp/x", "-Wl,--load-pass-plugin=x", "-Wl,-Map=/x", "", "-l",
    ],
)  # fmt: skip
def test_unsafe_link_options(option: str) -> None:
    assert not is_safe_link_option(option)


def test_link_command(tmp_path: Path, toolchain: Toolchain) -> None:
    corpus = _corpus(tmp_path)
    program = corpus.program("p/prog")
    out = tmp_path / "out"
    command = link_command(toolchain, corpus, program, {"p/a.o": Path("/x/a.o")}, out)
    assert command == [
        str(toolchain.clang), "-fuse-ld=lld", "-Wl,--gc-sections", "/x/a.o", "-lm", "-o", str(out),
    ]  # fmt: skip
    with pytest.raises(CorpusError, match=r"p/a\.o"):
        link_command(toolchain, corpus, program, {}, out)
    for ask in (corpus.program, corpus.module):
        with pytest.raises(CorpusError, match="nestor corpus info"):
            ask("none")

"""Environments as gymnasium and their users see them."""

import contextlib
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import nestor.registration
from nestor.compiler.channel import Channel
from nestor.compiler.toolchain import Toolchain
from nestor.corpus import llvm_layout, store
from nestor.corpus.model import Corpus, CorpusError
from nestor.environment import CompileEnvironment, make
from nestor.errors import NestorError
from nestor.problem.registry import find_problem
from nestor.problems.inlining_size.channel import channel_options
from nestor.registration import environment_ids, register
from nestor.rollout.gate import probe_folder
from tests.environment.episodes import ENVIRONMENT_ID, EVICTION_ID, inlining, play

CC1 = "-cc1 -triple x86_64-pc-linux-gnu -Oz -emit-obj -mrelocation-model pic -pic-level 2"
SILENT, ASKING, BROKEN = "demo/silent.o", "demo/asking.o", "demo/broken.o"


@pytest.fixture(scope="module")
def corpus(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Return a corpus of a module that asks nothing, one that does and one that is damaged."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "demo").mkdir()
    (folder / "silent.c").write_text("int answer(void) { return 42; }\n")
    shutil.copy(probe_folder() / "probe.c", folder / "asking.c")
    front_end = ["-Oz", "-c", "-emit-llvm", "-Xclang", "-disable-llvm-passes"]
    for name in (SILENT, ASKING):
        stem = Path(name).stem
        bitcode = folder / f"{name}.bc"
        command = [str(toolchain.clang), *front_end, str(folder / f"{stem}.c"), "-o", str(bitcode)]
        subprocess.run(command, check=True, timeout=60)
    (folder / f"{BROKEN}.bc").write_bytes(b"no bitcode")
    for name in (SILENT, ASKING, BROKEN):
        (folder / f"{name}.cmd").write_bytes("\0".join(CC1.split()).encode())
    names = ", ".join(f'"{name}"' for name in (SILENT, ASKING, BROKEN))
    (folder / "corpus_description.json").write_text(
        f'{{"has_thinlto": false, "modules": [{names}]}}'
    )
    assert llvm_layout.read(folder).modules
    return store.load(folder)


@pytest.mark.parametrize("identity", [ENVIRONMENT_ID, EVICTION_ID])
def test_gymnasium_finds_no_fault(identity: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = gymnasium.make(identity)
        check_env(made.unwrapped)
        made.close()


def test_every_problem_with_an_environment_is_registered() -> None:
    assert environment_ids() == {
        ENVIRONMENT_ID: "inlining-size",
        EVICTION_ID: "regalloc-eviction",
    }


def test_registering_again_is_silent() -> None:
    before = gymnasium.registry[ENVIRONMENT_ID]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        register()
        nestor.registration.register()
    assert gymnasium.registry[ENVIRONMENT_ID] is before


def test_an_id_that_names_the_module_needs_no_import() -> None:
    code = (
        "import gymnasium\n"
        f"e = gymnasium.make('nestor.registration:{ENVIRONMENT_ID}')\n"
        "o, i = e.reset(seed=0); print(len(o) == len(e.unwrapped.features), i['module'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True probe.cpp\n", "")


def test_the_default_answers_give_the_stock_object(env: CompileEnvironment, corpus: Corpus) -> None:
    end = play(env)
    assert end["digest"] == end["stock_digest"]
    assert (end["reward"], end["truncated"]) == (0.0, False)
    assert end["decisions"] == end["steps"] > 20
    with contextlib.closing(inlining(corpus.root, module=ASKING)) as other:
        end = play(other)
        assert end["module"] == ASKING
        assert end["digest"] == end["stock_digest"]


def test_the_reward_is_the_change_in_per_cent(env: CompileEnvironment) -> None:
    ends = [play(env, action) for action in (0, 1)]
    assert ends[0]["digest"] != ends[1]["digest"]
    for end in ends:
        change = 100 * (end["loadable"] - end["stock"]) / end["stock"]
        assert end["reward"] == pytest.approx(-change)
        assert change != 0


def test_features_are_what_the_compiler_announces(
    env: CompileEnvironment, toolchain: Toolchain, tmp_path: Path
) -> None:
    source = str(probe_folder() / "probe.cpp")
    command = [str(toolchain.clang), "-Oz", "-c", source, "-o", str(tmp_path / "x.o")]
    with Channel(command, channel_options) as channel:
        row = channel.observe()
        assert row is not None
        assert env.features == tuple(tensor.name for tensor in channel.features)
        observation, info = env.reset()
        assert observation.tolist() == [row[name][0] for name in env.features]
    assert info["default"] == observation[env.features.index("inlining_default")]


def test_equal_seeds_draw_equal_modules(corpus: Corpus) -> None:
    def modules(env: CompileEnvironment) -> list[Any]:
        infos = [env.reset(seed=7)[1], *(env.reset()[1] for _ in range(3))]
        return [(info["module"], info.get("skipped")) for info in infos]

    with contextlib.closing(inlining(corpus.root)) as env:
        first = modules(env)
        # What was learned meanwhile about modules must not change what is drawn.
        assert modules(env) == first


def test_modules_without_an_episode_are_passed_over_and_named(corpus: Corpus) -> None:
    skipped: dict[str, str] = {}
    with contextlib.closing(inlining(corpus.root, split="all")) as env:
        for seed in range(8):
            _, info = env.reset(seed=seed)
            assert info["module"] == ASKING
            skipped |= info.get("skipped", {})
    assert skipped.keys() == {SILENT, BROKEN}
    assert "asks nothing" in skipped[SILENT]
    assert "error" in skipped[BROKEN]


def test_a_module_without_an_episode_is_a_clear_error(corpus: Corpus) -> None:
    with contextlib.closing(inlining(corpus.root, module=SILENT)) as env:
        for _ in range(2):
            with pytest.raises(NestorError, match=r"silent\.o: the compiler asks nothing; take"):
                env.reset()
        _, info = env.reset(options={"module": ASKING})
        assert info["module"] == ASKING


@pytest.mark.parametrize(
    "wrong",
    [{"module": "x.o"}, {"split": "train"}, {"corpus": "/nonexistent"}, {"llvm": "/nonexistent"}],
)
def test_wrong_arguments_are_explained(wrong: dict[str, Any]) -> None:
    with pytest.raises(NestorError):
        inlining(**wrong)


def test_corpus_arguments_are_checked(corpus: Corpus) -> None:
    with pytest.raises(CorpusError, match="not both"):
        inlining(corpus.root, module=ASKING, split="train")
    with pytest.raises(CorpusError, match="no module"):
        inlining(corpus.root, module="demo/other.o")
    with pytest.raises(CorpusError, match="no modules in the split test"):
        inlining(corpus.root, split="test")
    with pytest.raises(ValueError, match="timeout"):
        inlining(timeout=0)


def test_misuse_raises(env: CompileEnvironment) -> None:
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()
    with pytest.raises(gymnasium.error.InvalidAction):
        env.step(2)
    env.step(np.int64(1))
    play(env)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_several_at_once() -> None:
    vector = gymnasium.make_vec(
        f"nestor.registration:{ENVIRONMENT_ID}", num_envs=2, vectorization_mode="sync"
    )
    first, _ = vector.reset(seed=3)
    names = vector.envs[0].unwrapped.features  # type: ignore[attr-defined]
    default = names.index("inlining_default")
    observations, ends = first, []
    for _ in range(60):  # beyond the end of an episode
        observations, _, terminated, _, infos = vector.step(observations[:, default].astype(int))
        ends += [infos["loadable"] - infos["stock"]] if terminated.all() else []
    vector.close()
    assert first.shape == (2, len(names))
    assert [list(change) for change in ends] == [[0, 0]]


def test_a_problem_without_an_environment_says_so() -> None:
    example = Path(__file__).parent.parent.parent / "examples" / "hoisting"
    assert find_problem(str(example)).name == "hoisting"
    with pytest.raises(NestorError, match="hoisting has no environment"):
        make(str(example))

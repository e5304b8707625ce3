import contextlib
import gc
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
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

CC1 = "-cc1 -triple x86_64-pc-linux-gnu -Oz -emit-obj -mrelocation-model pic -pic-level 2"
ENVIRONMENT_ID = "nestor/InliningForSize-v0"
EVICTION_ID = "nestor/RegallocEviction-v0"
SILENT, ASKING, BROKEN = "demo/silent.o", "demo/asking.o", "demo/broken.o"


def inlining(*corpus: Path, **settings: Any) -> CompileEnvironment:
    """The environment of inlining for size."""
    environment = make("inlining-size", **({"corpus": corpus[0]} if corpus else {}), **settings)
    assert isinstance(environment, CompileEnvironment)
    return environment


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


@pytest.fixture
def env() -> Iterator[CompileEnvironment]:
    """The environment on the built-in module."""
    made = inlining()
    yield made
    made.close()


def play(env: CompileEnvironment, action: int | None = None, **reset: Any) -> dict[str, Any]:
    """Play one episode with always the same action, or the default's; return the end."""
    _, info = env.reset(**reset)
    rewards, done = [], False
    while not done:
        answer = info["default"] if action is None else action
        _, reward, terminated, truncated, info = env.step(answer)
        rewards.append(reward)
        done = terminated or truncated
    assert not any(rewards[:-1])
    return {**info, "reward": rewards[-1], "truncated": truncated, "steps": len(rewards)}


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("nestor-")]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of this test alone."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def compiler_of(env: CompileEnvironment) -> int:
    assert env._channel is not None
    return env._channel._process.pid


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


def test_a_compiler_that_dies_truncates_the_episode(env: CompileEnvironment) -> None:
    env.reset()
    os.kill(compiler_of(env), signal.SIGKILL)
    observation, reward, terminated, truncated, info = env.step(1)
    assert observation in env.observation_space
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "status -9" in info["failure"]
    assert "loadable" not in info
    assert play(env)["reward"] == 0.0  # the next episode is not touched


def test_a_compiler_that_falls_silent_truncates_the_episode() -> None:
    with contextlib.closing(inlining(timeout=2.0)) as env:
        env.reset()
        os.kill(compiler_of(env), signal.SIGSTOP)
        before = time.monotonic()
        *_, truncated, info = env.step(1)
        assert truncated
        assert "in time" in info["failure"]
        assert time.monotonic() - before < 10


def test_the_time_of_the_agent_does_not_count() -> None:
    with contextlib.closing(inlining(timeout=2.0)) as env:
        env.reset()
        time.sleep(2.2)
        assert "failure" not in env.step(1)[-1]


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


def test_close_leaves_nothing(scratch: Path) -> None:
    env = inlining()
    before, processes = descriptors(), children()
    for _ in range(3):
        env.reset()
        env.step(1)
    assert is_running(compiler_of(env))
    assert len(left_behind(scratch)) == 2  # of the last episode only
    env.close()
    env.close()
    assert (descriptors(), children(), left_behind(scratch)) == (before, processes, [])
    play(env)  # an environment may be used again
    assert (descriptors(), children(), left_behind(scratch)) == (before, processes, [])


def test_a_forgotten_environment_leaves_nothing(scratch: Path) -> None:
    env = inlining()
    processes = children()
    env.reset()
    assert children() != processes
    del env
    gc.collect()
    assert (children(), left_behind(scratch)) == (processes, [])


def test_a_fork_does_not_end_the_compiler(env: CompileEnvironment) -> None:
    env.reset()
    child = multiprocessing.get_context("fork").Process(target=env._finalizer)
    child.start()
    child.join(30)
    assert is_running(compiler_of(env))
    assert env.step(1)[2:4] == (False, False)


def test_a_killed_agent_leaves_no_compiler_for_ever(tmp_path: Path) -> None:
    # LLVM's channel reads end-of-file for ever, at full speed; the kernel has to end it.
    code = (
        "import time\n"
        "from nestor.environment import make\n"
        "env = make('inlining-size', timeout=2.0)\n"
        "env.reset()\n"
        "print(env._channel._process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as agent:
        assert agent.stdout is not None
        compiler = int(agent.stdout.readline())
        agent.kill()
    end = time.monotonic() + 40
    while is_running(compiler) and time.monotonic() < end:
        time.sleep(0.1)
    assert not is_running(compiler)


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


@pytest.fixture
def eviction() -> Iterator[CompileEnvironment]:
    """The environment of register eviction on the built-in module."""
    made = make("regalloc-eviction")
    assert isinstance(made, CompileEnvironment)
    yield made
    made.close()


def test_candidates_are_rows_and_a_mask(eviction: CompileEnvironment) -> None:
    observation, info = eviction.reset()
    mask = info["action_mask"]
    assert observation.shape == (33, len(eviction.features))
    assert mask.shape == (33,)
    assert mask[info["default"]] == 1
    assert mask.sum() >= 2
    assert not observation[mask == 0].any()
    own = observation[:, eviction.features.index("is_own")]
    assert own.tolist() == [0.0] * 32 + [1.0]


def test_default_evictions_give_the_stock_object(eviction: CompileEnvironment) -> None:
    end = play(eviction)
    assert end["digest"] == end["stock_digest"]
    assert end["cost"] == end["stock"]


def test_other_evictions_change_the_cost(eviction: CompileEnvironment) -> None:
    _, info = eviction.reset()
    done = False
    while not done:
        first = int(np.flatnonzero(info["action_mask"])[0])
        _, reward, terminated, truncated, info = eviction.step(first)
        done = terminated or truncated
    assert info["digest"] != info["stock_digest"]
    assert reward == pytest.approx(100 * (info["stock"] - info["cost"]) / info["stock"])
    assert reward != 0


def test_an_action_that_may_not_be_chosen_is_the_default(eviction: CompileEnvironment) -> None:
    _, info = eviction.reset()
    done, count = False, 0
    while not done:
        masked = int(np.flatnonzero(info["action_mask"] == 0)[0])
        count += 1
        _, _, terminated, truncated, info = eviction.step(masked)
        done = terminated or truncated
    assert info["replaced"] == count
    assert info["digest"] == info["stock_digest"]


def test_a_problem_without_an_environment_says_so() -> None:
    example = Path(__file__).parent.parent.parent / "examples" / "hoisting"
    assert find_problem(str(example)).name == "hoisting"
    with pytest.raises(NestorError, match="hoisting has no environment"):
        make(str(example))

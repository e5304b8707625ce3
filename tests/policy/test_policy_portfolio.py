"""Portfolios: one file whose members are policies, of which only a compiler can keep the best."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nestor.cli.policies.policy import Policy as PolicyCommand
from nestor.policy import bundle
from nestor.policy.linear import as_sum
from nestor.policy.network import (
    Layer,
    LogNormalisation,
    MlpPolicy,
    QuantileNormalisation,
    build,
    initial_layers,
)
from nestor.policy.portfolio import MAX_MEMBERS, PortfolioPolicy, portfolio_of
from nestor.policy.spec import F64, PolicyError
from tests.policy.bundles import Fields, pack, parts, refused

FEATURES = ("is_hint", "use_def_density", "progress")
NORMALISATION = LogNormalisation(np.array([1.0, 0.5, 0.0]), np.array([0.4, 0.9, 1.0]))


def single(weights: list[float], bias: float = 0.0) -> MlpPolicy:
    """Return a policy about evictions without hidden layers."""
    layer = Layer(np.array([weights], dtype=np.float32), np.array([bias], dtype=np.float32))
    return build(
        FEATURES, "decision", NORMALISATION, (layer,), problem="regalloc-eviction", rule="pick"
    )


def inputs(rows: int = 500) -> F64:
    """Return random features of rows."""
    return np.random.default_rng(1).normal(0, 50, (rows, len(FEATURES)))


@pytest.fixture
def singles() -> list[MlpPolicy]:
    return [single([0.1, -2, 0.3], 0.7), single([1e-9, 3, -0.2]), single([-1, 0.1, 7], -1)]


@pytest.fixture
def portfolio(singles: list[MlpPolicy]) -> PortfolioPolicy:
    return portfolio_of(singles, {"seed": 3})


def deep(members: int) -> PortfolioPolicy:
    """Return a portfolio whose members share hidden layers."""
    rng = np.random.default_rng(2)
    boundaries = np.sort(rng.integers(-50, 400, (3, 21)), axis=1).astype(np.float32)
    shared = build(
        FEATURES,
        "decision",
        QuantileNormalisation(boundaries),
        initial_layers((9, 8, 1), rng),
        problem="regalloc-priority",
        rule="value",
    )
    last = initial_layers((8, members), rng)[0]
    meta = replace(shared.metadata, kind="portfolio")
    return PortfolioPolicy(meta, shared.normalisation, (shared.layers[0], last))


def test_members_have_the_logits_of_the_single_policies(
    portfolio: PortfolioPolicy, singles: list[MlpPolicy]
) -> None:
    x = inputs()
    assert len(portfolio.members()) == len(singles)
    assert portfolio.parameters == sum(one.parameters for one in singles)
    for member, one in zip(portfolio.members(), singles, strict=True):
        assert member.logits(x).tobytes() == one.logits(x).tobytes()
        assert member.rule == one.rule
    assert len({member.logits(x).tobytes() for member in portfolio.members()}) == len(singles)


def test_members_keep_the_range(singles: list[MlpPolicy]) -> None:
    limits = np.array([[-10.0, 10.0], [-20.0, 20.0], [-30.0, 30.0]])
    ranged = [replace(one, range=limits) for one in singles]
    x = inputs()
    for member, one in zip(portfolio_of(ranged, {}).members(), ranged, strict=True):
        assert not member.in_range(x).all()
        assert member.logits(x).tobytes() == one.logits(x).tobytes()


@pytest.mark.parametrize("members", [1, 2, 5, MAX_MEMBERS])
def test_round_trip(tmp_path: Path, members: int) -> None:
    """Also with two outputs, which are one logit in a network and two members in a portfolio."""
    written = deep(members)
    path = tmp_path / "portfolio.safetensors"
    bundle.save(written, path)
    found = bundle.load(path)
    assert isinstance(found, PortfolioPolicy)
    assert bundle.to_bytes(found) == path.read_bytes()
    assert bundle.digest(found) == bundle.digest(written)
    x = inputs()
    logits = [member.logits(x) for member in found.members()]
    assert len(logits) == members
    for before, after in zip(written.members(), logits, strict=True):
        assert before.logits(x).tobytes() == after.tobytes()


def test_a_portfolio_has_no_logits_of_its_own(portfolio: PortfolioPolicy) -> None:
    for ask in (portfolio.logits, portfolio.fast_logits, portfolio.actions):
        with pytest.raises(PolicyError, match="it has no logits"):
            ask(inputs())


def test_the_rule_threshold_is_refused(portfolio: PortfolioPolicy) -> None:
    with pytest.raises(PolicyError, match="rule threshold"):
        replace(portfolio.metadata, rule="threshold")
    fields, tensors = parts(portfolio)
    del fields["rule"]  # the rule of files that name none
    refused(pack(fields, tensors), "rule threshold")
    refused(pack(fields | {"rule": "threshold"}, tensors), "rule threshold")


def test_too_many_members_are_refused() -> None:
    with pytest.raises(PolicyError, match="more than 64 members"):
        deep(MAX_MEMBERS + 1)
    fields, tensors = parts(deep(MAX_MEMBERS))
    for name in ("layer.1.weight", "layer.1.bias"):
        tensors[name] = np.concatenate([tensors[name], tensors[name][:1]])
    refused(pack(fields, tensors), "more than 64 members")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _, t: t.update({"layer.0.bias": t["layer.0.bias"][1:]}), "bias for every row"),
        (lambda _, t: t.update({"layer.0.weight": t["layer.0.weight"][:, 1:]}), "layer 0 must be"),
        (lambda _, t: t.update({"layer.0.bias": t["layer.0.bias"] * np.nan}), "not finite"),
        (lambda _, t: t.pop("layer.0.weight"), "lacks the tensor layer.0.weight"),
        (lambda _, t: t.update({"layer.0.weight": np.ones((0, 3), np.float32)}), "dimensions"),
        (lambda _, t: t.update({"extra": np.ones(1)}), "'extra'"),
        (lambda f, _: f.update(transform="quantile"), "lacks the tensor normalise.boundaries"),
        (lambda f, _: f.update(transform="none"), "transform"),
        (lambda f, _: f.update(kind="mlp"), "one or two outputs"),
        (lambda f, _: f.update(answers="deviation"), "with the rule pick"),
    ],
)
def test_hostile_files(
    portfolio: PortfolioPolicy, change: Callable[[Fields, Fields], object], reason: str
) -> None:
    fields, tensors = parts(portfolio)
    change(fields, tensors)
    refused(pack(fields, tensors), reason)


def test_damaged_files_load_or_are_refused(portfolio: PortfolioPolicy) -> None:
    data = bundle.to_bytes(portfolio)
    rng = np.random.default_rng(4)
    loaded = 0
    for _ in range(1500):
        damaged = bytearray(data)
        for at in rng.integers(len(data), size=rng.integers(1, 4)):
            damaged[at] ^= 1 << int(rng.integers(8))
        try:
            found = bundle.from_bytes(bytes(damaged))
        except PolicyError:
            continue
        loaded += 1
        if isinstance(found, PortfolioPolicy):
            assert 1 <= len(found.members()) <= MAX_MEMBERS
    assert 0 < loaded < 1500
    for size in range(len(data)):
        with pytest.raises(PolicyError):
            bundle.from_bytes(data[:size])


def test_members_that_do_not_go_together(singles: list[MlpPolicy]) -> None:
    one = singles[0]
    with pytest.raises(PolicyError, match="at least one"):
        portfolio_of([], {})
    renamed = replace(one.metadata, features=("a", "b", "c"))
    others = [
        replace(one, metadata=renamed),
        replace(one, metadata=replace(one.metadata, rule="value")),
        replace(one, metadata=replace(one.metadata, problem="regalloc-priority")),
        replace(one, normalisation=LogNormalisation(np.zeros(3), np.ones(3))),
        replace(one, range=np.array([[-1.0, 1.0]] * 3)),
    ]
    for other in others:
        with pytest.raises(PolicyError, match="weights alone"):
            portfolio_of([one, other], {})
    rng = np.random.default_rng(5)
    for widths in ((3, 4, 1), (3, 2)):
        unfit = replace(one, layers=initial_layers(widths, rng))
        with pytest.raises(PolicyError, match="must be sums"):
            portfolio_of([one, unfit], {})
    # Where a policy comes from does not matter to the compiler.
    other = replace(singles[1], metadata=replace(one.metadata, provenance={"seed": 9}))
    assert len(portfolio_of([one, other], {}).members()) == 2


def test_description_has_a_sum_for_each_member(
    portfolio: PortfolioPolicy,
    singles: list[MlpPolicy],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sums = [as_sum(one) for one in singles]
    path = tmp_path / "portfolio.safetensors"
    bundle.save(portfolio, path)
    assert PolicyCommand(policy=str(path)).run() == 0
    text = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "kind portfolio" in lines
    assert "members 3" in lines
    for number, expected in enumerate(sums, 1):
        assert f"member {number} {expected}" in lines
    assert PolicyCommand(policy=str(path), json=True).run() == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["logit"] is None
    assert [each["constant"] for each in facts["members"]] == [s.constant for s in sums if s]
    assert bundle.describe(deep(2))["members"] is None
    assert "members" not in bundle.describe(singles[0])

"""What learners by gradient share, against plain references."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nestor.learn.batch import Batch, chosen_rows, rows_of
from nestor.learn.gradient import novelty
from nestor.learn.gradient.descent import begin, descend, logits_of, minibatches, policy_of
from nestor.learn.gradient.imitation import imitation_loss
from nestor.learn.gradient.memory import Memory
from nestor.learn.gradient.novelty import NoveltySettings, NoveltyState
from nestor.learn.gradient.optimiser import OptimiserState, adam_step
from nestor.policy.rule import PICK, THRESHOLD, VALUE
from tests.learn.worlds import beginner, threshold_world


def test_adam_step_is_that_of_the_paper() -> None:
    rng = np.random.default_rng(0)
    state = OptimiserState.begin(rng.standard_normal(5))
    expected, mean, square = state.parameters.copy(), np.zeros(5), np.zeros(5)
    for step in range(1, 30):
        gradient = rng.standard_normal(5) * 10.0 ** rng.integers(-9, 3)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        deviation = np.sqrt(square / (1 - 0.999**step))
        expected -= 0.03 * (mean / (1 - 0.9**step)) / (deviation + 1e-4)
        before = state.parameters.copy()
        after = adam_step(state, gradient, 0.03, epsilon=1e-4)
        assert (state.parameters == before).all(), "a step leaves the state before it alone"
        state = after
        assert state.updates == step
        assert state.parameters == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert state.mean == pytest.approx(mean)
        assert state.square == pytest.approx(square)


def test_adam_steps_are_those_of_one_optimiser_of_pytorch() -> None:
    rng = np.random.default_rng(1)
    state = OptimiserState.begin(rng.standard_normal(7))
    parameters = torch.tensor(state.parameters, requires_grad=True)
    optimiser = torch.optim.Adam([parameters], 0.01)
    for _ in range(25):
        gradient = rng.standard_normal(7)
        parameters.grad = torch.tensor(gradient)
        optimiser.step()
        state = adam_step(state, gradient, 0.01)
    assert (state.parameters == parameters.detach().numpy()).all()


def test_first_step_is_as_long_as_the_rate() -> None:
    """Without the correction of its bias the first step of Adam would be three times as long."""
    state = adam_step(OptimiserState.begin(np.zeros(2)), np.array([3.0, -0.01]), 0.05)
    assert state.parameters == pytest.approx([-0.05, 0.05], rel=1e-5)


@pytest.mark.parametrize(("clip", "norm"), [(1.0, 1.0), (0.5, 0.5), (1e6, 5.0)])
def test_long_gradients_are_shortened(clip: float, norm: float) -> None:
    template = beginner(threshold_world())  # a linear policy of two inputs and a bias
    inputs = torch.tensor([[3.0, 4.0]])

    def loss(net: Any) -> torch.Tensor:
        total: torch.Tensor = net(inputs).sum() - net.layers[0].bias.sum()
        return total

    state, value = descend(template, begin(template), loss, 0.1, clip=clip)
    gradient = state.mean / 0.1
    assert gradient == pytest.approx(np.array([3.0, 4.0, 0.0]) * norm / 5)
    assert value == pytest.approx(0.0), "before the step: the weights are 0"
    _, after = descend(template, state, loss, 0.1)
    assert after == pytest.approx(0.1 * -7, abs=1e-5)


def test_parameters_are_rounded_for_the_network_only() -> None:
    template = beginner(threshold_world())
    parameters = template.flatten_parameters().astype(np.float64) * (1 + 1e-12)
    found = policy_of(template, parameters)
    assert (found.flatten_parameters() == template.flatten_parameters()).all()
    logit = logits_of(template, parameters, torch.zeros(1, 2))
    assert float(logit[0]) == template.flatten_parameters()[-1]
    assert not logit.requires_grad
    assert begin(template).parameters.dtype == np.float64


def test_minibatches_are_every_question_once() -> None:
    parts = list(minibatches(10, 4, [1, 2]))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert sorted(np.concatenate(parts)) == list(range(10))
    assert list(np.concatenate(parts)) != list(range(10))
    assert [list(p) for p in minibatches(10, 4, [1, 2])] == [list(p) for p in parts]
    assert [list(p) for p in minibatches(10, 4, [1, 3])] != [list(p) for p in parts]


QUESTION = np.array([0, 0, 0, 1, 2, 2])


def test_rows_of_chosen_questions() -> None:
    rows, place = rows_of(QUESTION, np.array([2, 0, 2, 1]))
    assert rows.tolist() == [4, 5, 0, 1, 2, 4, 5, 3]
    assert place.tolist() == [0, 0, 1, 1, 1, 2, 2, 3]
    rows, place = rows_of(QUESTION, np.array([], dtype=np.int64))
    assert len(rows) == len(place) == 0
    assert chosen_rows(PICK, QUESTION, np.array([2, 0, 1])).tolist() == [2, 3, 5]
    assert chosen_rows(THRESHOLD, np.arange(3), np.array([1, 0, 1])).tolist() == [0, 1, 2]


def test_ends_of_episodes() -> None:
    batch = Batch(
        x=np.zeros((4, 1)), question=np.arange(4), action=np.array([2, 0, 2, 3]),
        log_probability=np.zeros(4), episode=np.array([0, 0, 1, 1]), change=np.zeros(4),
        share=np.zeros(4), unit=np.array([3, 5]), total=np.array([90.0, 60.0]),
        stock=np.array([100.0, 100.0]),
    )  # fmt: skip
    assert batch.last.tolist() == [False, True, False, True]
    assert batch.relative_change == pytest.approx(-0.25)
    assert batch.acted_pct == 75
    assert replace(batch, action=np.zeros(0, np.int64)).acted_pct == 0
    assert len(batch) == 4


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_imitation_of_thresholds_is_the_cross_entropy(smoothing: float) -> None:
    logits, action = np.array([0.3, -1.2, 2.0]), np.array([1, 1, 0])
    likely = 1 / (1 + np.exp(-logits))
    label = np.where(action == 1, 1 - smoothing, smoothing)
    expected = -(label * np.log(likely) + (1 - label) * np.log(1 - likely)).mean()
    tensors = (torch.tensor(logits).float(), torch.arange(3), torch.tensor(action))
    assert float(imitation_loss(THRESHOLD, *tensors, smoothing)) == pytest.approx(expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.12])
def test_imitation_of_picks_is_the_cross_entropy(smoothing: float) -> None:
    logits, action = np.array([0.3, -1.2, 2.0, 5.0, 0.1, -0.7]), np.array([1, 0, 1])
    losses = []
    for number in range(3):
        own = logits[number == QUESTION]
        label = np.full(len(own), smoothing / len(own))
        label[action[number]] += 1 - smoothing
        losses.append(-(label * (own - np.log(np.exp(own).sum()))).sum())
    tensors = (torch.tensor(logits), torch.tensor(QUESTION), torch.tensor(action))
    assert float(imitation_loss(PICK, *tensors, smoothing)) == pytest.approx(np.mean(losses))


def test_imitation_of_values_is_half_the_squared_error() -> None:
    logits, action = torch.tensor([1.0, 4.0]), torch.tensor([2.0, 2.0])
    loss = imitation_loss(VALUE, logits, torch.arange(2), action, 0.3)
    assert float(loss) == pytest.approx(0.5 * (1 + 4) / 2 + 0.5 * np.log(2 * np.pi), rel=1e-6)


def remembered(first: int, counts: list[int], action: int = 0) -> Memory:
    """Questions whose rows and reward are their number, from ``first`` on."""
    question = np.repeat(np.arange(len(counts)), counts)
    numbers = first + np.arange(len(counts))
    z = (first + question).astype(np.float32)[:, None]
    last = np.arange(len(counts)) == len(counts) - 1
    actions = np.full(len(counts), action, dtype=np.int64)
    return Memory(z, question, actions, numbers.astype(np.float32), last)


def test_memory_forgets_the_oldest() -> None:
    memory = Memory.empty(1)
    for number in range(4):
        memory = memory.with_newer(remembered(3 * number, [1, 3, 2], number), capacity=7)
    assert memory.reward.tolist() == [5, 6, 7, 8, 9, 10, 11]
    assert memory.z[:, 0].tolist() == [5, 5, 6, 7, 7, 7, 8, 8, 9, 10, 10, 10, 11, 11]
    assert memory.question.tolist() == [0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5, 6, 6]
    assert memory.action.tolist() == [1, 2, 2, 2, 3, 3, 3]
    assert memory.last.tolist() == [True, False, False, True, False, False, True]
    assert len(memory) == 7
    exact = Memory.empty(1).with_newer(remembered(0, [2, 1]), capacity=2)
    assert exact.reward.tolist() == [0, 1]
    assert exact.with_newer(remembered(2, [1]), capacity=2).reward.tolist() == [1, 2]


def test_memory_selects_questions_with_their_rows() -> None:
    part = remembered(0, [1, 3, 2]).select(np.array([1, 0, 1]))
    assert part.z[:, 0].tolist() == [1, 1, 1, 0, 1, 1, 1]
    assert part.question.tolist() == [0, 0, 0, 1, 2, 2, 2]
    assert part.reward.tolist() == [1, 0, 1]
    assert part.last.tolist() == [False, False, False]


def test_novelty_fades_with_what_was_seen_and_with_time() -> None:
    settings = NoveltySettings(weight=0.5, half_life=2.0, learning_rate=0.01)
    rng = np.random.default_rng(0)
    z = rng.standard_normal((50, 3)).astype(np.float32)
    state = novelty.begin(settings, 3, seed=4)
    state, first = novelty.update(settings, state, z, 4)
    assert first.mean() == pytest.approx(0.5), "the first batch's mean is the weight"
    assert (first > 0).all()
    scale = state.scale
    bonuses = [first]
    for _ in range(100):
        state, bonus = novelty.update(settings, state, z, 4)
        bonuses.append(bonus)
    assert state.scale == scale
    assert state.predictor.updates == 101
    # The errors, without the weight and what time takes away, fall on what was seen often.
    errors = [b.mean() / 0.5 ** (n / 2) / 0.5 for n, b in enumerate(bonuses)]
    assert errors[100] < 0.3 * errors[0]
    assert errors[1] == pytest.approx(errors[0], rel=0.2)
    far = novelty.update(settings, state, 3 * z, 4)[1]
    assert far.mean() > 3 * bonuses[100].mean(), "and stay where little was seen"


def test_sums_are_in_one_order() -> None:
    """With one thread PyTorch adds in the same order on every machine."""
    try:
        torch.set_num_threads(2)
        novelty.update(NoveltySettings(weight=1.0), _seen_nothing(), np.ones((4, 3), np.float32), 0)
        assert torch.get_num_threads() == 1
        torch.set_num_threads(2)
        template = beginner(threshold_world())
        descend(template, begin(template), lambda net: net(torch.ones(1, 2)).sum(), 0.1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(1)


def _seen_nothing() -> NoveltyState:
    return novelty.begin(NoveltySettings(weight=1.0), 3, seed=0)


def test_novelty_that_is_worth_nothing_costs_nothing() -> None:
    settings = NoveltySettings()
    state = novelty.begin(settings, 3, seed=0)
    assert len(state.predictor.parameters) == 0
    assert state.scale == 0
    after, bonus = novelty.update(settings, state, np.ones((4, 3), np.float32), 0)
    assert after is state
    assert bonus.tolist() == [0, 0, 0, 0]


def test_novelty_is_the_error_of_the_predictor() -> None:
    """The bonus is (predicted - fixed)² against its first mean, over two layers of 32 and 16."""
    settings = NoveltySettings(weight=0.5, half_life=2.0, learning_rate=0.01)
    rng = np.random.default_rng(0)
    z = rng.standard_normal((6, 3)).astype(np.float32)
    fixed = np.random.default_rng([4, 6])
    layers = []
    for before, count in ((3, 32), (32, 16)):
        weight = fixed.standard_normal(before * count) * np.sqrt(2 / before)
        layers.append((weight.reshape(count, before), np.zeros(count)))
    target = _two_layers(layers, z)
    own = [(rng.standard_normal((32, 3)), rng.standard_normal(32))]
    own.append((rng.standard_normal((16, 32)), rng.standard_normal(16)))
    errors = ((_two_layers(own, z) - target) ** 2).mean(axis=1)
    parameters = np.concatenate([part.ravel() for layer in own for part in layer])
    state = NoveltyState(replace(OptimiserState.begin(parameters), updates=6), 8.0)
    after, bonus = novelty.update(settings, state, z, 4)
    assert bonus == pytest.approx(0.5 * 0.5**3 * errors / 8, rel=1e-4)
    assert after.scale == 8
    # The gradient by the last bias: twice the difference, of the mean over 16 outputs and 6 rows.
    by_bias = 2 * (_two_layers(own, z) - target).mean(axis=0) / 16
    assert after.predictor.mean[-16:] == pytest.approx(0.1 * by_bias, rel=1e-4)
    assert novelty.begin(settings, 3, 4).scale == 0
    exact = np.concatenate([part.ravel() for layer in layers for part in layer])
    same, nothing = novelty.update(settings, NoveltyState(OptimiserState.begin(exact), 0.0), z, 4)
    assert same.scale == 1, "where there is no error there is nothing to divide by"
    assert nothing.tolist() == [0] * 6
    begun = novelty.begin(settings, 3, 4).predictor.parameters
    drawn = np.random.default_rng([4, 5]).standard_normal(96) * np.sqrt(2 / 3)
    assert begun[:128] == pytest.approx(np.concatenate([drawn, np.zeros(32)]))
    assert len(begun) == len(parameters)


def _two_layers(layers: Any, z: Any) -> Any:
    """Return the outputs of two layers with a ReLU between them."""
    (first, bias), (second, other) = layers
    return np.maximum(z @ first.T + bias, 0) @ second.T + other

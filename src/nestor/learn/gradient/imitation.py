"""The loss of learners that imitate: how unlikely a policy thinks the actions of another one."""

from typing import TYPE_CHECKING

from nestor.policy.rule import PICK, THRESHOLD, Rule

if TYPE_CHECKING:
    from torch import Tensor


def imitation_loss(
    rule: Rule, logits: "Tensor", question: "Tensor", action: "Tensor", smoothing: float
) -> "Tensor":
    """Return the mean cross-entropy of the policy with labels that are the given actions.

    Labels are smoothed: the action has the probability 1 − ``smoothing``, and what is left is the
    other action's (threshold) or spread over all candidates (pick). Under the rule ``value`` it is
    the mean negative log-density, half the squared error but for a constant.

    :param logits: ``[rows]``
    :param question: ``[rows]``
    :param action: ``[questions]``
    """
    import torch

    if rule == THRESHOLD:
        labels = action.float() * (1 - 2 * smoothing) + smoothing
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    unlikely = -rule.torch_log_probability(logits, question, action)
    if rule != PICK or smoothing == 0:
        return unlikely.mean()
    candidates = torch.bincount(question)
    first = candidates.cumsum(0) - candidates
    # Of each row: the log-probability of its question's action, and how far its logit is off that.
    chosen = logits[first + action.long()]
    each = unlikely[question] + chosen[question] - logits
    mean = torch.zeros_like(unlikely).index_add(0, question, each) / candidates
    return ((1 - smoothing) * unlikely + smoothing * mean).mean()

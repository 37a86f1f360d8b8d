"""Learning from nodes without a label: agree with what was predicted a moment ago, only more decidedly."""

import torch
from torch import Tensor
from torch.nn import functional as F

# Exponent 1/TEMPERATURE sharpens a prediction; the weight grows to its full value over so many epochs.
TEMPERATURE = 0.5
WARM_UP = 20


class Consistency:
    r"""The cross entropy of the scores in training against the sharpened prediction of the last evaluation.

    .. math::
        \frac{w}{n} \min(1, e/20) \sum_i \sum_c -q_{ic} \log p_{ic}, \qquad q_{ic} \propto \bar p_{ic}^{\,2}

    p are the class probabilities with dropout, in training; :math:`\bar p` those of all n nodes without dropout, which
    the evaluation after the epoch before has computed anyway; e counts these evaluations. No label is used.
    """

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.target: Tensor | None = None
        self.seen = 0

    def see(self, scores: Tensor) -> None:
        """Take the scores of an evaluation, [n, classes]."""
        self.target = torch.softmax(scores.detach() / TEMPERATURE, 1)
        self.seen += 1

    def loss(self, scores: Tensor) -> Tensor:
        """What to add to the loss for the scores of training, [n, classes]; zero before the first evaluation."""
        if self.target is None:
            return scores.new_zeros(())
        return self.weight * min(1.0, self.seen / WARM_UP) * F.cross_entropy(scores, self.target)

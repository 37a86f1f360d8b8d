"""Consistency loss: learn from unlabelled nodes by agreeing with sharpened predictions of the previous epoch."""

import torch
from torch import Tensor
from torch.nn import functional as F

# Probabilities are raised to the power 1 / TEMPERATURE and normalised.
TEMPERATURE = 0.5
# Number of epochs until the weight reaches its full value.
WARM_UP = 20


class Consistency:
    r"""The cross-entropy between the scores in training and the sharpened prediction of the last evaluation.

    .. math::
        \frac{w}{n} \min(1, e/20) \sum_i \sum_c -q_{ic} \log p_{ic}, \qquad q_{ic} \propto \bar p_{ic}^{\,2}

    Here p are the class probabilities in training, with dropout, and :math:`\bar p` those of the evaluation after the
    previous epoch, without dropout, over all n nodes. e is the number of evaluations so far. No labels are used.
    """

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.target: Tensor | None = None
        self.evaluations = 0

    def record(self, scores: Tensor) -> None:
        """Record the scores of an evaluation, [n, classes]."""
        self.target = torch.softmax(scores.detach() / TEMPERATURE, 1)
        self.evaluations += 1

    def loss(self, scores: Tensor) -> Tensor:
        """The term to add to the loss, from training scores [n, classes]; zero before the first evaluation."""
        if self.target is None:
            return scores.new_zeros(())
        return self.weight * min(1.0, self.evaluations / WARM_UP) * F.cross_entropy(scores, self.target)

"""Losses and metrics."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from dissensus.errors import InputError, one_of
from dissensus.train._config import BINARY_METRICS, CLASS_METRICS, ERRORS, METRICS, is_error


@dataclass(frozen=True)
class Metric:
    r"""One of :data:`METRICS`, of scores [m, outputs] against targets [m].

    ``accuracy``, ``balanced_accuracy`` (mean recall of the classes) and ``macro_f1`` judge the class with the largest
    score; ``roc_auc`` and ``average_precision`` the ranking by the difference of two scores. All of these are in per
    cent, and larger is better. ``mae`` and ``rmse`` are errors in the targets' unit, and smaller is better.

    Everything but the accuracy is computed by scikit-learn.
    """

    name: str

    @property
    def regression(self) -> bool:
        """Whether it is an error of predicted numbers instead of a metric of classes."""
        return is_error(self.name)

    @property
    def sign(self) -> int:
        """-1 if a smaller value is better, otherwise 1."""
        return -1 if self.regression else 1

    def loss(self, scores: Tensor, y: Tensor) -> Tensor:
        """The mean cross-entropy for classes; for numbers the mean absolute error (``mae``) or mean squared error."""
        if not self.regression:
            return F.cross_entropy(scores, y)
        return (F.l1_loss if self.name == "mae" else F.mse_loss)(scores[:, 0], y)

    def __call__(self, scores: Tensor, y: Tensor) -> float:
        """The value of the metric."""
        if self.name == "accuracy":
            return 100.0 * int((scores.argmax(1) == y).sum()) / len(y)
        import sklearn.metrics as library

        # Scores that have diverged are reported when the loss is checked.
        scores, target = torch.nan_to_num(scores), y.cpu().numpy()
        if self.regression:
            error = library.mean_absolute_error if self.name == "mae" else library.root_mean_squared_error
            return float(error(target, scores[:, 0].cpu().numpy()))
        if self.name in BINARY_METRICS:
            area = library.roc_auc_score if self.name == "roc_auc" else library.average_precision_score
            return 100.0 * float(area(target, (scores[:, 1] - scores[:, 0]).cpu().numpy()))
        predicted = scores.argmax(1).cpu().numpy()
        if self.name == "macro_f1":
            return 100.0 * float(library.f1_score(target, predicted, average="macro", zero_division=0.0))
        # Only the classes in y, because scikit-learn warns about a class that is only predicted.
        found = library.recall_score(target, predicted, labels=sorted(set(target.tolist())), average="macro")
        return 100.0 * float(found)


def metric_of(name: str | None, y: Tensor, parts: Callable[[], tuple[Tensor, ...]]) -> Metric:
    """The metric of that name for targets y; by default the accuracy of classes or the mean absolute error of numbers.

    ``parts`` returns the validation and the test targets: metrics of two classes need both classes in each.
    """
    regression = y.is_floating_point()
    name = one_of("metric", name or ("mae" if regression else "accuracy"), METRICS)
    if (name in ERRORS) != regression:
        raise InputError(
            f"train.metric={name} is for {'numbers' if name in ERRORS else 'classes'}, and the targets y are "
            f"{'numbers' if regression else 'classes'}: choose "
            f"{', '.join(ERRORS if regression else CLASS_METRICS + BINARY_METRICS)}"
        )
    if name in BINARY_METRICS and (int(y.max()) != 1 or any(len(part.unique()) < 2 for part in parts())):
        raise InputError(
            f"train.metric={name} needs two classes, 0 and 1, both among the validation and among the test nodes: "
            f"choose {', '.join(CLASS_METRICS)}"
        )
    return Metric(name)

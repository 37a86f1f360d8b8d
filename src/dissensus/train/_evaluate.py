"""Accuracy on validation and test nodes, at the end of time or at every step of the solver."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dissensus.errors import SolverError
from dissensus.nn import ContinuousModel, Model
from dissensus.train._batch import Split

# How far beyond T the GRAND family looks for the best time.
REACH = 3.0


@dataclass(frozen=True)
class Score:
    """Accuracies in per cent, the validation loss, and the solver time that they were read at (None: the end)."""

    val: float
    test: float
    val_loss: float
    time: float | None = None

    def beats(self, other: "Score | None") -> bool:
        """A higher validation accuracy, or the same with a lower validation loss; the earlier stays where both tie."""
        return other is None or (self.val, -self.val_loss) > (other.val, -other.val_loss)


@torch.no_grad()
def evaluate(model: Model, split: Split, *, select_time: bool, see: Callable[[Tensor], None] | None = None) -> Score:
    """The score of a model in evaluation mode; with ``select_time`` the best on validation over solver time.

    ``see`` is called with the scores of all nodes at the end of time, [n, classes].
    """
    model.eval()
    see = see or (lambda scores: None)
    if select_time:
        assert isinstance(model, ContinuousModel)
        return _over_time(model, split, see)
    scores = split.scores(model)
    see(scores)
    return _score(scores, split)


def _over_time(model: ContinuousModel, split: Split, see: Callable[[Tensor], None]) -> Score:
    best: list[Score] = []

    def look(time: float, state: Tensor) -> None:
        scores = model.decoder(model.read(state))
        if time == end:
            see(scores)
        score = _score(scores, split, time)
        if not best or score.beats(best[-1]):
            best.append(score)
        reached.append(time)

    reached = [0.0]
    end = model.time
    split.prepare(model)
    try:
        # A step ends at T, so what is reported without this selection is always among the candidates.
        model.integrate(split.x, split.edge_index, split.edge_weight, time=REACH * end, save_at=(end,), callback=look)
    except SolverError:
        # Beyond T a field that nobody trained there may well diverge; up to T it must not.
        if reached[-1] < end:
            raise
    return best[-1]


def _score(scores: Tensor, split: Split, time: float | None = None) -> Score:
    right = scores.argmax(1) == split.y
    val, test = (100.0 * int(right[nodes].sum()) / len(nodes) for nodes in (split.val, split.test))
    return Score(val, test, float(split.loss(scores, split.val)), time)

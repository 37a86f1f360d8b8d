"""Accuracy on validation and test nodes, at the end of time or at every step of the solver."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from dissensus.errors import SolverError
from dissensus.nn import ContinuousModel, Model

# How far beyond T the GRAND family looks for the best time.
REACH = 3.0


@dataclass(frozen=True)
class Split:
    """A graph on the device it is trained on, and the nodes of each part as indices.

    Attributes:
        x: node features, [n, features].
        edge_index: [2, edges].
        y: classes, [n]; -1 where unknown.
        train: training nodes, [their number]; so for ``val`` and ``test``.
    """

    x: Tensor
    edge_index: Tensor
    y: Tensor
    train: Tensor
    val: Tensor
    test: Tensor

    @classmethod
    def of(cls, data: Data, device: torch.device, dtype: torch.dtype) -> Self:
        """The split of a PyG ``Data`` with the three masks."""
        parts = (mask.nonzero().view(-1).to(device) for mask in (data.train_mask, data.val_mask, data.test_mask))
        return cls(data.x.to(device, dtype), data.edge_index.to(device), data.y.to(device), *parts)

    def loss(self, scores: Tensor, nodes: Tensor) -> Tensor:
        """Mean cross entropy of scores [n, classes] on some nodes."""
        return F.cross_entropy(scores.index_select(0, nodes), self.y.index_select(0, nodes))


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
def evaluate(model: Model, split: Split, *, select_time: bool) -> Score:
    """The score of a model in evaluation mode; with ``select_time`` the best on validation over solver time."""
    model.eval()
    if not select_time:
        return _score(model(split.x, split.edge_index), split)
    assert isinstance(model, ContinuousModel)
    return _over_time(model, split)


def _over_time(model: ContinuousModel, split: Split) -> Score:
    best: list[Score] = []

    def look(time: float, state: Tensor) -> None:
        score = _score(model.decoder(model.read(state)), split, time)
        if not best or score.beats(best[-1]):
            best.append(score)
        reached.append(time)

    reached = [0.0]
    end = model.time
    try:
        # A step ends at T, so what is reported without this selection is always among the candidates.
        model.integrate(split.x, split.edge_index, time=REACH * end, save_at=(end,), callback=look)
    except SolverError:
        # Beyond T a field that nobody trained there may well diverge; up to T it must not.
        if reached[-1] < end:
            raise
    return best[-1]


def _score(scores: Tensor, split: Split, time: float | None = None) -> Score:
    right = scores.argmax(1) == split.y
    val, test = (100.0 * int(right[nodes].sum()) / len(nodes) for nodes in (split.val, split.test))
    return Score(val, test, float(split.loss(scores, split.val)), time)

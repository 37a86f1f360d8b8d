"""Evaluation on validation and test targets, at the final time or at every step of the solver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dissensus.errors import InputError, SolverError
from dissensus.train._batch import WholeGraph
from dissensus.train._metrics import Metric

# As in the GRAND family, the best time is searched up to this multiple of T.
MAX_TIME_FACTOR = 3.0


@dataclass(frozen=True)
class Score:
    """The metric on validation and test targets, the validation loss, and the solver time (None for the final one).

    ``sign`` is -1 if a smaller metric is better.
    """

    val: float
    test: float
    val_loss: float
    time: float | None = None
    sign: int = 1

    def beats(self, other: "Score | None") -> bool:
        """Whether the validation metric is better, or equal with a lower loss. Ties keep the earlier score."""
        return other is None or (self.sign * self.val, -self.val_loss) > (other.sign * other.val, -other.val_loss)


@torch.no_grad()
def evaluate(
    model: torch.nn.Module,
    graph: WholeGraph,
    metric: Metric,
    *,
    select_time: bool,
    on_scores: Callable[[Tensor], None] | None = None,
) -> Score:
    """The score of a model in evaluation mode; with ``select_time``, at the solver time that is best on validation.

    ``on_scores`` is called with the scores of all targets, [t, outputs], at the model's final time.
    """
    model.eval()
    on_scores = on_scores or (lambda scores: None)
    if select_time:
        return _over_time(model, graph, metric, on_scores)
    scores = graph.scores(model)
    on_scores(scores)
    return _score(scores, graph, metric)


def _over_time(model: Any, graph: WholeGraph, metric: Metric, on_scores: Callable[[Tensor], None]) -> Score:
    best: list[Score] = []

    def callback(time: float, scores: Tensor) -> None:
        scores = graph.pool(scores)
        if time == end:
            on_scores(scores)
        score = _score(scores, graph, metric, time)
        if not best or score.beats(best[-1]):
            best.append(score)
        times.append(time)

    times = [0.0]
    end = model.time
    graph.prepare(model)
    try:
        # A step ends at T, so the score without this selection is among the candidates.
        model.scores_over_time(graph.x, graph.edge_index, MAX_TIME_FACTOR * end, callback, **graph.inputs(model))
    except SolverError:
        # The field was only trained up to T, and may diverge beyond.
        if times[-1] < end:
            raise
    if times[-1] < end:
        raise InputError(
            f"{type(model).__name__}.scores_over_time does not reach the time {end:g}: call callback(t, scores) after "
            "every step, also at model.time"
        )
    return best[-1]


def _score(scores: Tensor, graph: WholeGraph, metric: Metric, time: float | None = None) -> Score:
    val, test = ((scores.index_select(0, part), graph.y.index_select(0, part)) for part in (graph.val, graph.test))
    return Score(metric(*val), metric(*test), float(metric.loss(*val)), time, metric.sign)

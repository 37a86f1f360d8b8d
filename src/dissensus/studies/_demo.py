"""The demonstration: when depth is needed, on an embedded graph, by a graph convolutional network and BIMP."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import torch

from dissensus import measure
from dissensus.errors import InputError
from dissensus.report import Curves, Page, Series, Table, Value
from dissensus.train import Config, Run, run

DEPTHS = (2, 4, 8, 32)
SPLITS = (1, 2, 3)
DATASET = "digits"
# task -> settings of its data
TASKS: dict[str, dict[str, Any]] = {"all features": {}, "features at labelled nodes alone": {"missing_features": 1.0}}
VERDICT = (
    "Depth is needed where a node's class must come from far away, as when most nodes have no features; where every "
    "node has its own, two layers are enough."
)

_HIDDEN = 32
_INTRO = (
    "Handwritten digits, 1,797 of them, each joined to the most similar ones; 20 of each kind are labelled, the rest "
    "are to be classified. A graph convolutional network (GCN) averages over neighbours in every layer, which is "
    "linear consensus: deep enough, all nodes agree and nothing is left to classify by. BIMP replaces it by nonlinear "
    "opinion dynamics, which keeps disagreement at any depth.\n\n"
    f"{VERDICT}\n\n"
    "Both have 32 channels, the same training nodes, optimiser and number of epochs, and are not tuned. BIMP's encoder "
    "has no bias, so that nodes without features only listen. Depth is the number of layers of the GCN, and of Euler "
    "steps of BIMP. Label propagation sees no features: it spreads the known labels over the graph. Neighbours here "
    "are alike by construction, so it is hard to beat."
)
# The models, and how tables call them.
_NAMES = {"gcn": "GCN", "bimp": "BIMP"}
_REFERENCE = "label-propagation"


@dataclass(frozen=True)
class DemoRun:
    """One model on one split.

    Attributes:
        task: one of ``TASKS``.
        model: its name.
        depth: layers, or Euler steps of size one; None for label propagation.
        split: which split.
        accuracy: on the test nodes, in per cent, at the epoch of the best validation accuracy.
        seconds: what training and evaluation took.
        layers, energies, ranks: Dirichlet energy and effective rank of the hidden states along the layers.
    """

    task: str
    model: str
    depth: int | None
    split: int
    accuracy: float
    seconds: float
    layers: tuple[int, ...] = ()
    energies: tuple[float, ...] = ()
    ranks: tuple[float, ...] = ()

    def __str__(self) -> str:
        model = self.model if self.depth is None else f"{self.model} depth {self.depth}"
        return f"{self.task}, split {self.split}, {model}: {self.accuracy:.1f} % ({self.seconds:.1f} s)"


@dataclass(frozen=True)
class Demonstration:
    """What :func:`demo` found: one :class:`DemoRun` for each task, model, depth and split, and the path of the page."""

    outcomes: tuple[DemoRun, ...]
    page: Path | None = None

    def table(self) -> Table:
        """Accuracy by task and depth, and the effective rank of the last hidden state."""
        rows: list[list[Any]] = []
        for task in TASKS:
            reference = Value.of(o.accuracy for o in self.of(task, _REFERENCE))
            for depth in self.depths:
                found = {model: self.of(task, model, depth) for model in _NAMES}
                rows.append(
                    [f"{task}, depth {depth}"]
                    + [Value.of(o.accuracy for o in outcomes) for outcomes in found.values()]
                    + [reference]
                    + [mean(o.ranks[-1] for o in outcomes) for outcomes in found.values()]
                )
        names = list(_NAMES.values())
        return Table(
            ["task", *names, "label propagation", *(f"{name} rank" for name in names)],
            rows,
            caption="Test accuracy by depth, in per cent",
            note="Mean ± standard deviation (splits). The rank is the effective rank of the last hidden state, of "
            f"{_HIDDEN} channels: near one, all nodes agree. {VERDICT}",
            digits=1,
        )

    def of(self, task: str, model: str, depth: int | None = None) -> list[DemoRun]:
        """The outcomes of one model at one depth, one for each split."""
        return [o for o in self.outcomes if (o.task, o.model, o.depth) == (task, model, depth)]

    @property
    def depths(self) -> list[int]:
        """The depths that were trained."""
        return sorted({o.depth for o in self.outcomes if o.depth is not None})

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        outcomes = [asdict(outcome) for outcome in self.outcomes]
        return {"report": self.page and str(self.page), "verdict": VERDICT, "outcomes": outcomes}


def demo(
    *,
    depths: Sequence[int] = DEPTHS,
    splits: Sequence[int] = SPLITS,
    epochs: int = 50,
    output: str | Path | None = None,
    on_outcome: Callable[[DemoRun], None] = lambda outcome: None,
) -> Demonstration:
    """Train a GCN and BIMP at growing depth on the embedded digits, with all features and with few.

    Args:
        depths: numbers of layers (GCN) and of Euler steps (BIMP).
        splits: of the data; the first one's states are measured along the layers on the page.
        epochs: of each training.
        output: file of a report page; None writes none.
        on_outcome: called with each finished model.
    """
    if epochs < 1:
        raise InputError(f"epochs is {epochs}: give at least 1")
    if not depths or not splits or min(depths) < 2:
        raise InputError(f"depths are {list(depths)}, splits {list(splits)}: give at least one each, depths from 2 on")
    outcomes = []
    for task in TASKS:
        for model, depth in [(_REFERENCE, None), *((model, depth) for depth in depths for model in _NAMES)]:
            for split in splits:
                outcomes.append(_outcome(task, model, depth, split, epochs))
                on_outcome(outcomes[-1])
    found = Demonstration(tuple(outcomes))
    return found if output is None else Demonstration(found.outcomes, _page(found).write(output))


def _outcome(task: str, model: str, depth: int | None, split: int, epochs: int) -> DemoRun:
    result = run(_config(task, model, depth, split, epochs))
    measured = () if depth is None else _measured(result, depth)
    return DemoRun(task, model, depth, split, result.test, result.seconds, *measured)


def _config(task: str, model: str, depth: int | None, split: int, epochs: int) -> Config:
    """One run: 20 labels a class, the same width, dropout and optimiser for both networks."""
    options: dict[str, Any] = {}
    if depth is not None:
        steps = {"num_layers": depth} if model == "gcn" else {"time": depth, "method": "euler", "step_size": 1.0}
        # Without a bias in the encoder, nodes without features only listen.
        silent = {} if model == "gcn" else {"encoder_bias": False}
        options = {"dropout": 0.2, "input_dropout": 0.0, **silent, **steps}
    return Config.from_dict(
        {
            "data": {"name": DATASET, "split": split, **TASKS[task]},
            "model": {"name": model, "hidden_channels": _HIDDEN, **options},
            "train": {"epochs": epochs, "optimizer": "adam", "lr": 0.02, "weight_decay": 5e-4, "seed": 1},
        }
    )


def _measured(result: Run, depth: int) -> tuple[tuple[int, ...], tuple[float, ...], tuple[float, ...]]:
    """Layers, and the Dirichlet energies and effective ranks of their states."""
    graph = result.dataset.split(result.config.data.split)
    # The scores of a network of L layers are its L-th state; its hidden states end one before.
    last = depth if result.model.continuous else depth - 1
    layers = tuple(sorted({*(2**i for i in range(8) if 2**i < last), last}))
    with torch.no_grad():
        states = result.model.trajectory(graph.x, graph.edge_index, layers)
    energies = measure.dirichlet_energy(states, graph.edge_index)
    return layers, tuple(energies.tolist()), tuple(measure.effective_rank(states).tolist())


def _page(found: Demonstration) -> Page:
    page = Page("When depth is needed", _INTRO)
    page.add("Accuracy by depth", found.table(), *(_accuracy(found, task) for task in TASKS))
    deepest, task = found.depths[-1], list(TASKS)[-1]
    first = {name: found.of(task, model, deepest)[0] for model, name in _NAMES.items()}
    energies = [Series(name, o.layers, o.energies) for name, o in first.items()]
    ranks = [Series(name, o.layers, o.ranks) for name, o in first.items()]
    page.add(
        f"Inside the networks of depth {deepest}, {task}",
        Curves(energies, x_label="layer", y_label="Dirichlet energy", x_log=True, y_log=True),
        Curves(ranks, x_label="layer", y_label="effective rank", x_log=True),
        text="Measured from layer to layer of one trained network.",
    )
    return page


def _accuracy(found: Demonstration, task: str) -> Curves:
    lines = []
    for model, name in (*_NAMES.items(), (_REFERENCE, "label propagation")):
        samples = [
            [o.accuracy for o in found.of(task, model, None if model == _REFERENCE else depth)]
            for depth in found.depths
        ]
        lines.append(
            Series(name, found.depths, list(map(mean, samples)), list(map(min, samples)), list(map(max, samples)))
        )
    return Curves(
        lines,
        title=task.capitalize(),
        x_label="depth",
        y_label="test accuracy (%)",
        x_log=True,
        caption="Mean, and the range over splits.",
    )

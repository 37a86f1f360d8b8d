"""Dirichlet energy, relative energy and ranks over 1000 layers of untrained models on a small random graph."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from dissensus.catalogue import MODELS
from dissensus.runs import Record, key
from dissensus.studies._printed import printed
from dissensus.studies._study import Config, Plan, Request, Row, Study
from dissensus.studies._views import Lines, Summary

if TYPE_CHECKING:
    from torch import Tensor

_MEASURES = {
    "dirichlet_energy": ("Dirichlet energy", True),
    "relative_dirichlet_energy": ("relative Dirichlet energy", True),
    "effective_rank": ("effective rank", False),
    "numerical_rank": ("numerical rank", False),
}
# Eight curves a chart at most, as many as there are colours: two models must not look alike.
VARIANTS = ("bimp-aa", "bimp-aa-rw", "grand-aa", "grand-aa-rw", "grand++-aa", "grand++-aa-rw", "graphcon-gcn")
DISCRETE = ("gat", "gcn", "gcn-pairnorm", "gcn-group", "sage")
_COMMON = {"nodes": 10, "channels": 2, "edge_share": 0.4, "layers": 1000}


def run_energy(config: Config) -> dict[str, Any]:
    """Measure the states of one untrained model along its layers, in double precision.

    The graph, its features from U[0, 1] and the model's weights come from the seed, so that all models see the same.
    A continuous model starts at the features themselves and takes Euler steps of size 1.

    Args:
        config: ``model, seed, nodes, channels, edge_share, layers``.
    """
    import torch

    from dissensus import measure, nn

    x, edge_index = _graph(config)
    layers = _layers(config["layers"])
    channels = config["channels"]
    # The last layer of a discrete model gives the scores, so there is one more than hidden ones.
    options: dict[str, Any] = {"num_layers": config["layers"] + 1}
    continuous = MODELS[config["model"]].continuous
    if continuous:
        options = {"time": float(config["layers"]), "method": "euler", "step_size": 1.0}
    if config["model"] == "gat":
        options["heads"] = 1  # two channels cannot be shared among its usual eight
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(config["seed"])
        sizes = {"in_channels": channels, "hidden_channels": channels, "out_channels": channels}
        model: Any = nn.create(config["model"], **sizes, **options).double().eval()
        if continuous:
            torch.nn.init.eye_(model.encoder.linear.weight)
            torch.nn.init.zeros_(model.encoder.linear.bias)
        states = model.trajectory(x, edge_index, layers)
    found = [measure.summary(state, edge_index) for state in states]
    return {"layers": layers, **{name: [entry[name] for entry in found] for name in _MEASURES}}


def _graph(config: Config) -> "tuple[Tensor, Tensor]":
    """Features [nodes, channels] and edges, both ways, of a connected random graph; redrawn until it is connected."""
    import torch
    from torch_geometric.utils import dense_to_sparse

    random = torch.Generator().manual_seed(config["seed"])
    n = config["nodes"]
    while True:
        upper = (torch.rand(n, n, generator=random) < config["edge_share"]).triu(1)
        adjacency = (upper | upper.T).double()
        if bool((torch.linalg.matrix_power(adjacency + torch.eye(n).double(), n) > 0).all()):
            break
    x = torch.rand(n, config["channels"], generator=random, dtype=torch.float64)
    return x, dense_to_sparse(adjacency)[0]


def _layers(last: int) -> list[int]:
    """Layers to measure at, about 16 for each power of ten, the last one included."""
    return sorted({min(last, round(10 ** (step / 16))) for step in range(16 * len(str(last)))})


@dataclass(frozen=True, kw_only=True)
class Energy(Study):
    """Untrained models on one random graph a seed."""

    models: tuple[str, ...]

    @property
    def takes(self) -> tuple[str, ...]:
        return ("models", "seeds")

    def plan(self, request: Request) -> Plan:
        models = request.models or (("bimp", "gcn") if request.quick else self.models)
        common = {**_COMMON, "layers": 100} if request.quick else _COMMON
        return Plan([{**common, "model": model, "seed": seed} for model in models for seed in request.seeds or (1,)])

    def rows(self, record: Record) -> list[Row]:
        config = record.config
        base = {"dataset": "random graph", "model": config["model"], "split": config["seed"], "seed": config["seed"]}
        settings = key({name: value for name, value in config.items() if name != "seed"})[:12]
        last = {"settings": settings, "finished": record.finished, "error": record.error}
        if record.result is None:
            return [{**base, "layer": None, "status": "failed", **dict.fromkeys(_MEASURES), **last}]
        columns = [record.result["layers"], *(record.result[name] for name in _MEASURES)]
        return [
            {**base, "layer": layer, "status": "done", **dict(zip(_MEASURES, values, strict=True)), **last}
            for layer, *values in zip(*columns, strict=True)
        ]

    def order(self, column: str) -> tuple[str, ...]:
        return self.models if column == "model" else ()


def _charts(name: str, *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> list[Lines]:
    """One chart for each measure, of some of the models."""
    return [
        Lines(
            name="-".join(filter(None, [measure.replace("_", "-"), name])),
            title=f"{label[0].upper()}{label[1:]}{f', {name}' if name else ''}",
            value=measure,
            only=only,
            without=without,
            x="layer",
            x_log=True,
            y_log=logarithmic,
            within=(1e-40, 1e10) if logarithmic else (0.0, inf),
            x_label="layers, or Euler steps of size 1",
            y_label=label,
        )
        for measure, (label, logarithmic) in _MEASURES.items()
    ]


ENERGY = Energy(
    name="energy",
    title="Dirichlet energy over depth",
    about=(
        "Untrained models, all from the same seed, on a connected random graph of 10 nodes with 2 features from "
        "U[0, 1], through 1000 layers or Euler steps of size 1. A continuous model starts at the features themselves. "
        "The raw energy of a state that grows says little: the energy relative to the squared norm, and the ranks, "
        "stand beside it."
    ),
    models=(*printed("homophilic").values("model"), "graphcon-gcn", "gread-f", "gread-fb", "acmp"),
    dimensions=("model", "layer"),
    target="dissensus.studies:run_energy",
    views=(
        *_charts("", without=(*VARIANTS, *DISCRETE)),
        *_charts("variants", only=("bimp", *VARIANTS)),
        *_charts("discrete", only=("bimp", *DISCRETE)),
        Summary(
            name="last",
            title="At the last layer",
            values={name: label for name, (label, _) in _MEASURES.items()},
            last="layer",
            shown=True,
        ),
    ),
)

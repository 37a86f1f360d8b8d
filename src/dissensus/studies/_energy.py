"""Dirichlet energy, relative energy and ranks over 1000 layers of untrained models on a small random graph."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from dissensus.errors import InputError
from dissensus.runs import Record, RunConfig, key
from dissensus.studies._printed import printed
from dissensus.studies._study import Request, Row, Study, StudyRuns
from dissensus.studies._views import Lines, Means
from dissensus.train import ModelConfig

if TYPE_CHECKING:
    from torch import Tensor

    from dissensus.nn import ModelInfo

_MEASURES = {
    "dirichlet_energy": ("Dirichlet energy", True),
    "relative_dirichlet_energy": ("relative Dirichlet energy", True),
    "effective_rank": ("effective rank", False),
    "numerical_rank": ("numerical rank", False),
}
# Eight curves a chart at most, as many as there are colours: two models must not look alike.
VARIANTS = ("bimp-aa", "bimp-aa-rw", "grand-aa", "grand-aa-rw", "grand++-aa", "grand++-aa-rw", "graphcon-gcn")
DISCRETE = ("gat", "gcn", "gcn-pairnorm", "gcn-group", "sage")
# The same models with the weights that they have by default, whose rectified units often die.
RANDOM = {f"{name}, random weights": name for name in DISCRETE}
_FLOOR = 1e-40  # far below what double precision leaves of equal states, about 1e-32
_COMMON = {"nodes": 10, "channels": 2, "edge_share": 0.4, "layers": 1000}


def run_energy(config: RunConfig) -> dict[str, Any]:
    """Measure the states of one untrained model along its layers, in double precision.

    The graph, its features from U[0, 1] and the model's weights come from the seed, so that all models see the same.
    A continuous model starts at the features themselves and takes Euler steps of size 1. A discrete one has the
    identity in place of its weights: the features are not negative, so no rectified unit dies, and what is lost is lost
    to smoothing. It has no dropout and is in training mode, where normalisations use the statistics of the states. A
    module that is not of this package keeps its own weights, and its layers are read by :func:`measure.watch`.

    Args:
        config: ``model, seed, nodes, channels, edge_share, layers``; ``fingerprint``, the hash of the file of a model
            from a file; ``weights = "random"`` keeps a discrete model's own random weights.
    """
    import torch

    from dissensus import nn

    x, edge_index = _graph(config)
    layers = _layers(config["layers"])
    channels = config["channels"]
    info = ModelConfig(config["model"], fingerprint=config.get("fingerprint")).info()
    if not issubclass(info.cls, nn.Model):
        states = _states_of_module(config, info, x, edge_index)
        return _measured(layers, [states[layer - 1] for layer in layers], edge_index)
    continuous = info.continuous
    if continuous:
        options: dict[str, Any] = {"time": float(config["layers"]), "method": "euler", "step_size": 1.0}
    else:  # the last layer gives the scores
        options = _plain_layers(info, config["layers"] + 1)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(config["seed"])
        sizes = {"in_channels": channels, "hidden_channels": channels, "out_channels": channels}
        model: Any = nn.create(config["model"], **sizes, **options).double().train(not continuous)
        if continuous:
            torch.nn.init.eye_(model.encoder.linear.weight)
            torch.nn.init.zeros_(model.encoder.linear.bias)
        elif config.get("weights") != "random":
            _keep_alive(model)
        states = model.trajectory(x, edge_index, layers)
    return _measured(layers, states, edge_index)


def _measured(layers: list[int], states: Any, edge_index: "Tensor") -> dict[str, Any]:
    from dissensus import measure

    found = [measure.summary(state, edge_index) for state in states]
    return {"layers": layers, **{name: [entry[name] for entry in found] for name in _MEASURES}}


def _states_of_module(config: RunConfig, info: "ModelInfo", x: "Tensor", edge_index: "Tensor") -> "tuple[Tensor, ...]":
    """The states after each of ``config["layers"]`` layers of a module with its own random weights, without dropout."""
    import torch
    from torch_geometric.data import Data

    from dissensus import measure

    channels = config["channels"]
    options = _plain_layers(info, config["layers"])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config["seed"])
        model = info.create(channels, channels, channels, **options).double()
    states = measure.watch(model, Data(x=x, edge_index=edge_index)).states
    if len(states) < config["layers"]:
        raise InputError(
            f"{info.name} of depth {config['layers']} has {len(states)} layers to read: let {info.depth} be the number "
            "of its MessagePassing layers"
        )
    return states


def _plain_layers(info: "ModelInfo", depth: int) -> dict[str, Any]:
    """Options for layers without dropout, and with one attention head, because more do not fit into two channels."""
    dropout = {name: 0.0 for name in info.known_options if name.endswith("dropout")}
    return info.at_depth(depth) | dropout | ({"heads": 1} if "heads" in info.known_options else {})


def _keep_alive(model: Any) -> None:
    """The identity in place of the weights of a discrete model, halved where a layer adds two maps; no bias."""
    import torch

    for layer in model.layers:
        maps = [part for part in layer.children() if getattr(part, "weight", None) is not None]
        for part in maps:
            part.weight.copy_(torch.eye(*part.weight.shape, dtype=part.weight.dtype) / len(maps))
        for name, parameter in layer.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()


def _graph(config: RunConfig) -> "tuple[Tensor, Tensor]":
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

    def plan(self, request: Request) -> StudyRuns:
        models = request.models or (("bimp", "gcn") if request.quick else self.models)
        common = {**_COMMON, "layers": 100} if request.quick else _COMMON
        seeds = request.seeds or ((1,) if request.quick else tuple(range(1, 11)))
        # A discrete model a second time, with its random weights.
        kinds: list[RunConfig] = [_pinned(model) for model in models if model not in RANDOM]
        kinds += [{"model": model, "weights": "random"} for model in models if model in DISCRETE and not request.quick]
        return StudyRuns([{**common, **kind, "seed": seed} for kind in kinds for seed in seeds])

    def rows(self, record: Record) -> list[Row]:
        config = record.config
        model = f"{config['model']}, random weights" if config.get("weights") == "random" else config["model"]
        base = {"dataset": "random graph", "model": model, "split": config["seed"], "seed": config["seed"]}
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


def _pinned(model: str) -> RunConfig:
    """The name of a model. One from a file also has the file's hash, so that it is run again when the file changes."""
    found = ModelConfig(model).pinned()
    return {"model": found.name} | ({} if found.fingerprint is None else {"fingerprint": found.fingerprint})


def _charts(name: str, *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> list[Lines]:
    """One chart for each measure, of some of the models."""
    return [
        Lines(
            name="-".join(filter(None, [measure.replace("_", "-"), name.replace(" ", "-")])),
            title=f"{label[0].upper()}{label[1:]}{f', {name}' if name else ''}",
            value=measure,
            only=only,
            without=without,
            x="layer",
            x_log=True,
            y_log=logarithmic,
            within=(0.0, 1e10) if logarithmic else (0.0, inf),
            floor=_FLOOR if logarithmic else None,
            quantiles=True,
            readme=measure == "dirichlet_energy" and name != "variants",
            x_label="layers, or Euler steps of size 1",
            y_label=label,
        )
        for measure, (label, logarithmic) in _MEASURES.items()
    ]


ENERGY = Energy(
    name="energy",
    title="Dirichlet energy over depth",
    about=(
        "Untrained models on connected random graphs of 10 nodes with 2 features from U[0, 1], one graph per seed and "
        "the same for all models, through 1000 layers or Euler steps of size 1. A continuous model starts at the "
        "features. A discrete one has the identity in place of its weights, so that no rectified unit dies, and its "
        "normalisation uses the statistics of the states. With random weights every unit of GCN dies, and those of "
        "SAGE in some seeds: a state of zeros, of rank 0, is no smoothing. Rounding keeps the energy of equal states "
        "near 1e-32; it is 0 where they are equal to the last bit. Curves are medians over the seeds, bands reach from "
        "the 10% to the 90% quantile. "
        "The raw energy of a state that grows says little: the energy relative to the squared norm, and the ranks, "
        "stand beside it."
    ),
    models=(*printed("homophilic").values("model"), "graphcon-gcn", "gread-f", "gread-fb", "acmp", *RANDOM),
    dimensions=("model", "layer"),
    target="dissensus.studies:run_energy",
    views=(
        *_charts("", without=(*VARIANTS, *DISCRETE, *RANDOM)),
        *_charts("variants", only=("bimp", *VARIANTS)),
        *_charts("discrete", only=("bimp", *DISCRETE)),
        *_charts("random weights", only=("bimp", *RANDOM)),
        Means(
            name="last",
            title="At the last layer",
            values={name: label for name, (label, _) in _MEASURES.items()},
            last="layer",
            shown=True,
        ),
    ),
)

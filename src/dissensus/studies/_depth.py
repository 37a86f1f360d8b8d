"""Accuracy over depth, all other settings fixed."""

from dataclasses import replace
from typing import Any

from dissensus.studies._study import Row, Training
from dissensus.studies._views import over

_VARIANTS = ("bimp-aa", "bimp-aa-rw", "grand-aa", "grand-aa-rw", "grand++-aa", "grand++-aa-rw")
_LAYERS = ("gcn", "gcn-pairnorm", "gcn-group", "gat", "sage")
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)
_CURVES, *_TABLES = over(
    "depth", "Accuracy over depth", "Test accuracy over depth, in per cent", loss=True, readme=(True, True)
)


def at_depth(point: Row) -> dict[str, Any]:
    """Settings of a model with ``depth`` layers, or ``depth`` Euler steps of size 1."""
    from dissensus import nn

    model = nn.info(point["model"])
    settings = {f"model.{option}": value for option, value in model.at_depth(point["depth"]).items()}
    # Selecting another time than the end would make it another depth.
    return {**settings, "train.select_time": False} if model.continuous else settings


DEPTH = Training(
    name="depth",
    title="Accuracy over depth",
    about=(
        "Test accuracy in per cent of models with 1 to 128 layers, or as many Euler steps of size 1; all other "
        "settings stay those of the preset, but no model may learn to scale time. The loss is the best mean over depth "
        "minus the mean at the greatest."
    ),
    models=("bimp", "grand-l", "grand++-l", "graphcon-tran", "kuramoto", *_LAYERS, *_VARIANTS),
    datasets=("cora", "citeseer", "pubmed"),
    dimensions=("dataset", "model", "depth"),
    axes={"depth": DEPTHS},
    flags=at_depth,
    quick_axes={"depth": (1, 8)},
    views=(
        replace(_CURVES, without=(*_LAYERS[1:], *_VARIANTS)),
        replace(_CURVES, name="accuracy-layers", title="Accuracy over depth, discrete models", only=("bimp", *_LAYERS)),
        replace(_CURVES, name="accuracy-variants", title="Accuracy over depth, variants", only=("bimp", *_VARIANTS)),
        *_TABLES,
    ),
)

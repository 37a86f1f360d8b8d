"""Accuracy over depth, all other settings fixed."""

from typing import Any

from dissensus.studies._study import Row, Training
from dissensus.studies._views import Details, Grid, Lines, Paired

_VARIANTS = ("bimp-aa", "bimp-aa-rw", "grand-aa", "grand-aa-rw", "grand++-aa", "grand++-aa-rw")
_LAYERS = ("gcn", "gcn-pairnorm", "gcn-group", "gat", "sage")
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128)


def at_depth(point: Row) -> dict[str, Any]:
    """Settings of a model with ``depth`` layers, or ``depth`` Euler steps of size 1."""
    from dissensus import nn

    model = nn.info(point["model"])
    settings = {f"model.{option}": value for option, value in model.at_depth(point["depth"]).items()}
    # Selecting another time than the end would make it another depth.
    return {**settings, "train.select_time": False} if model.continuous else settings


def _chart(name: str, title: str, **options: Any) -> Lines:
    return Lines(
        name=name,
        title=title,
        facet="dataset",
        x="depth",
        x_log=True,
        x_label="layers, or Euler steps of size 1",
        y_label="test accuracy (%)",
        **options,
    )


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
        _chart("accuracy", "Accuracy over depth", without=(*_LAYERS[1:], *_VARIANTS), readme=True),
        _chart("accuracy-layers", "Accuracy over depth, discrete models", only=("bimp", *_LAYERS), readme=True),
        _chart("accuracy-variants", "Accuracy over depth, variants", only=("bimp", *_VARIANTS), readme=True),
        Grid(
            name="accuracy",
            title="Test accuracy over depth, in per cent",
            facet="dataset",
            columns="depth",
            loss=True,
            shown=True,
            readme=True,
        ),
        Paired(name="paired", title="Paired tests at the greatest depth", last="depth", shown=True),
        Details(name="details", title="Each mean with its 95% interval"),
    ),
)

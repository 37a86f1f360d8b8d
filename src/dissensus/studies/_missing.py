"""Accuracy where features are known at the training nodes alone, or at few others: over depth, and over the share."""

from typing import Any

from dissensus.studies._as_printed import ATTENTION, REMOVED, UNCHANGED, Changes, change_views
from dissensus.studies._depth import DEPTHS, at_depth
from dissensus.studies._study import Row, Training
from dissensus.studies._views import Details, Grid, Lines, Paired, over

_MODELS = (
    *("bimp", "label-propagation", "feature-propagation", "grand-l", "sgc", "appnp"),
    *("gprgnn", "gcnii", "gcn-res", "gcn"),
)
_DATASETS = ("cora", "citeseer", "pubmed")
_ABOUT = (
    "The features of nodes outside the training set are set to zero. The preset missing has each model's best of "
    "four to eight trials, by validation accuracy on tuning splits with all of them missing; its files say which."
)


# What the preset missing has, made otherwise one at a time.
_CHANGES: dict[str, dict[str, Any]] = {
    "no node dropout": {"train.node_dropout": None},
    "attention of softmax": {"model.normalizer": "softmax"},
    "encoder with bias": {"model.encoder_bias": True},
    "features as they are": {"model.normalize_features": False},
    "1.0 u*": {"model.attention_ratio": 1.0},
    **{name: flags for name, flags in REMOVED.items() if name != "A_o = I"},
}


def _depth(point: Row) -> dict[str, Any]:
    return {"data.missing_features": 1.0, **at_depth(point)}


MISSING = Training(
    name="missing",
    title="Accuracy with missing features",
    about=f"{_ABOUT} Here only training nodes have features.",
    preset="missing",
    models=_MODELS,
    datasets=_DATASETS,
    flags=lambda point: {"data.missing_features": 1.0},
    views=(
        Grid(
            name="accuracy",
            title="Test accuracy with features at the training nodes alone, in per cent",
            shown=True,
            readme=True,
        ),
        Paired(shown=True),
        Details(),
    ),
)

MISSING_SHARE = Training(
    name="missing-share",
    title="Accuracy over the share of missing features and depth",
    about=(
        f"{_ABOUT} Here the share of nodes outside the training set that lose theirs grows to all of them, at several "
        "numbers of layers or Euler steps."
    ),
    preset="missing",
    models=_MODELS,
    datasets=_DATASETS,
    dimensions=("dataset", "model", "missing", "depth"),
    axes={"missing": (0.0, 0.5, 0.9, 0.99, 1.0), "depth": (2, 8, 32)},
    columns={"missing": "data.missing_features"},
    flags=lambda point: {"data.missing_features": point["missing"], **at_depth(point)},
    quick_axes={"missing": (0.5, 1.0), "depth": (2, 8)},
    views=(
        Lines(
            name="accuracy",
            title="Accuracy by share of missing features, at depth",
            facet=("dataset", "depth"),
            x="missing",
            x_label="share of the nodes outside the training set",
            y_label="test accuracy (%)",
        ),
        Grid(
            name="accuracy",
            title="Test accuracy by share of missing features and depth, in per cent",
            facet=("dataset", "model"),
            rows="missing",
            columns="depth",
            best="",
            shown=True,
        ),
        Paired(
            title="Paired tests at the greatest depth, with missing features",
            facet=("dataset", "missing"),
            last="depth",
        ),
        Details(),
    ),
)

MISSING_DEPTH = Training(
    name="missing-depth",
    title="Accuracy over depth with missing features",
    about=f"{_ABOUT} Here only training nodes have features, and depth is the number of layers or of Euler steps.",
    preset="missing",
    models=_MODELS,
    datasets=_DATASETS,
    dimensions=("dataset", "model", "depth"),
    axes={"depth": DEPTHS[1:]},
    flags=_depth,
    quick_axes={"depth": (2, 8)},
    views=over(
        "depth",
        "Accuracy over depth with missing features",
        "Test accuracy over depth with missing features, in per cent",
        loss=True,
        readme=(True, True),
    ),
)

MISSING_ABLATION = Changes(
    name="missing-ablation",
    title="What BIMP needs where features are missing",
    about=f"{_ABOUT} BIMP with that preset, and one thing at a time made otherwise.",
    preset="missing",
    models=("bimp",),
    datasets=_DATASETS,
    axes={"change": (UNCHANGED, *_CHANGES)},
    quick_axes={"change": (UNCHANGED, "linear")},
    quick_models=("bimp",),
    flags=lambda point: {"data.missing_features": 1.0, **_CHANGES.get(point["change"], {})},
    views=(*change_views("Test accuracy of BIMP with missing features and one change, in per cent"), ATTENTION),
)

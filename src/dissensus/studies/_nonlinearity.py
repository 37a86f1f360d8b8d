"""BIMP with other functions in place of tanh: over depth, and at the critical attention and below."""

from dataclasses import dataclass
from typing import Any

from dissensus.runs import Record
from dissensus.studies._depth import DEPTHS, at_depth
from dissensus.studies._printed import printed
from dissensus.studies._study import Row, Training, settings
from dissensus.studies._views import Details, Grid, Lines, Paired


def _flags(point: Row) -> dict[str, Any]:
    return {"model.saturation": point["saturation"], **at_depth(point)}


NONLINEARITY = Training(
    name="nonlinearity",
    title="Choice of the nonlinearity",
    about=(
        "Test accuracy in per cent of BIMP with seven saturating, non-saturating and linear functions, over depth in "
        "Euler steps of size 1, with the paper's settings and with ours; all else stays as in the preset."
    ),
    models=("bimp",),
    datasets=("cora",),
    dimensions=("dataset", "preset", "saturation", "depth"),
    axes={"preset": ("paper", "tuned"), "saturation": printed("nonlinearity").values("saturation"), "depth": DEPTHS},
    flags=_flags,
    quick_models=("bimp",),
    quick_axes={"preset": ("tuned",), "saturation": ("tanh", "linear"), "depth": (1, 8)},
    views=(
        Grid(
            name="accuracy",
            title="Test accuracy of BIMP by nonlinearity and depth, in per cent",
            facet=("dataset", "preset"),
            rows="depth",
            columns="saturation",
            best="",
            shown=True,
            readme=True,
        ),
        Lines(
            name="accuracy",
            title="Accuracy of BIMP by nonlinearity",
            facet=("dataset", "preset"),
            x="depth",
            series="saturation",
            x_log=True,
            x_label="Euler steps of size 1",
            y_label="test accuracy (%)",
        ),
        Paired(
            title="Paired tests at the greatest depth",
            of="saturation",
            reference="tanh",
            facet=("dataset", "preset"),
            last="depth",
            shown=True,
        ),
        Details(),
    ),
)


@dataclass(frozen=True, kw_only=True)
class CriticalStudy(Training):
    """One depth, where the attention relative to u* is the column ``attention``."""

    def rows(self, record: Record) -> list[Row]:
        attention = float(self.unwrap(record.config)["model"].get("attention_ratio", 1.0))
        return [{**row, "attention": attention} for row in super().rows(record)]


def _critical(point: Row) -> dict[str, Any]:
    flags = {"model.saturation": point["saturation"], **at_depth({**point, "depth": 64})}
    _, preset = settings(point["preset"], point["dataset"], point["model"])
    # Where the preset has this attention already, the run is one of the study above.
    same = preset.get("model.attention_ratio", 1.0) == point["attention"]
    return flags if same else {**flags, "model.attention_ratio": point["attention"]}


CRITICAL = CriticalStudy(
    name="nonlinearity-critical",
    title="Where the nonlinearity matters",
    about=(
        "Test accuracy in per cent of BIMP with 64 Euler steps of size 1, with the paper's settings and with ours, at "
        "the critical attention and at 0.9 of it. At u* a linear model drifts: its consensus grows as T, while tanh "
        "holds it (the check 'drift' of 'dissensus theory'); below u* both stay bounded."
    ),
    models=("bimp",),
    datasets=("cora",),
    dimensions=("dataset", "preset", "attention", "saturation"),
    axes={"preset": ("paper", "tuned"), "attention": (1.0, 0.9), "saturation": ("tanh", "linear", "gelu", "sigmoid")},
    flags=_critical,
    quick_models=("bimp",),
    quick_axes={"preset": ("paper",), "saturation": ("tanh", "linear")},
    views=(
        Grid(
            name="accuracy",
            title="Test accuracy of BIMP by nonlinearity and attention relative to u*, in per cent",
            facet=("dataset", "preset"),
            rows="saturation",
            columns="attention",
            best="",
            shown=True,
            readme=True,
        ),
        Paired(
            title="Paired tests of tanh at one attention relative to u*",
            of="saturation",
            reference="tanh",
            facet=("dataset", "preset", "attention"),
            shown=True,
        ),
        Details(),
    ),
)

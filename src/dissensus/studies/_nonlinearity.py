"""BIMP with other functions in place of tanh, over depth."""

from typing import Any

from dissensus.studies._depth import DEPTHS, at_depth
from dissensus.studies._printed import printed
from dissensus.studies._study import Row, Training
from dissensus.studies._views import Details, Grid, Lines, Paired


def _flags(point: Row) -> dict[str, Any]:
    return {"model.saturation": point["saturation"], **at_depth(point)}


NONLINEARITY = Training(
    name="nonlinearity",
    title="Choice of the nonlinearity",
    about=(
        "Test accuracy in per cent of BIMP with seven saturating, non-saturating and linear functions, over depth in "
        "Euler steps of size 1; all other settings stay those of the preset."
    ),
    models=("bimp",),
    datasets=("cora",),
    dimensions=("dataset", "saturation", "depth"),
    axes={"saturation": printed("nonlinearity").values("saturation"), "depth": DEPTHS},
    flags=_flags,
    quick_models=("bimp",),
    quick_axes={"saturation": ("tanh", "linear"), "depth": (1, 8)},
    views=(
        Grid(
            name="accuracy",
            title="Test accuracy of BIMP by nonlinearity and depth, in per cent",
            facet="dataset",
            rows="depth",
            columns="saturation",
            best="",
            shown=True,
            readme=True,
        ),
        Lines(
            name="accuracy",
            title="Accuracy of BIMP by nonlinearity",
            facet="dataset",
            x="depth",
            series="saturation",
            x_log=True,
            x_label="Euler steps of size 1",
            y_label="test accuracy (%)",
        ),
        Paired(
            name="paired",
            title="Paired tests at the greatest depth",
            of="saturation",
            reference="tanh",
            last="depth",
            shown=True,
        ),
        Details(name="details", title="Each mean with its 95% interval, and the printed value"),
    ),
)

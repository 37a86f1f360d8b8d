"""Error over depth on tasks whose answers lie far away, and accuracy over the distance itself."""

from typing import Any

from dissensus.studies._depth import at_depth
from dissensus.studies._study import Row, Training
from dissensus.studies._views import over

_MODELS = ("bimp", "bimp-aa", "gcn", "gcn-res", "gcnii", "adgn", "g2", "grand-l", "grand-aa")
_SPLITS = (
    "Graphs are generated; 60% train, 20% validate, 20% test. Settings are those of the preset tuned, whose notes say "
    "how they were chosen."
)


def _across(point: Row) -> dict[str, Any]:
    # Twice the distance, so that what matters is whether depth is bearable, not whether it suffices.
    return {"data.distance": point["distance"], **at_depth({**point, "depth": 2 * point["distance"]})}


LONG_RANGE = Training(
    name="long-range",
    title="Error over depth on long-range tasks",
    about=(
        "Mean absolute error, in hops, of the distance to a marked node (shortest-path), of the largest distance from "
        f"each node (eccentricity) and in each graph (diameter). {_SPLITS}"
    ),
    models=_MODELS,
    datasets=("shortest-path", "eccentricity", "diameter"),
    dimensions=("dataset", "model", "depth"),
    axes={"depth": (2, 4, 8, 16, 32, 64)},
    flags=at_depth,
    quick_datasets=("shortest-path",),
    quick_axes={"depth": (2, 4)},
    views=over(
        "depth",
        "Error over depth",
        "Mean absolute error over depth, in hops",
        name="error",
        y_label="mean absolute error (hops)",
        best="min",
    ),
)

RING = Training(
    name="ring-transfer",
    title="Accuracy over distance on rings",
    about=(
        "On a ring the class is written at one node and asked for at the opposite one, as many hops away as the "
        f"distance; every model has twice as many layers or Euler steps. {_SPLITS}"
    ),
    models=_MODELS,
    datasets=("ring-transfer",),
    dimensions=("dataset", "model", "distance"),
    axes={"distance": (2, 5, 10, 20, 40)},
    columns={"distance": "data.distance"},
    flags=_across,
    quick_datasets=("ring-transfer",),
    quick_axes={"distance": (2, 5)},
    views=over(
        "distance",
        "Accuracy over distance",
        "Test accuracy over distance, in per cent",
        x_label="hops from source to target",
        facet="",
    ),
)

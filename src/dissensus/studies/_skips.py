"""Skip connections and normalisation added to a GCN, over depth, beside BIMP."""

from typing import Any

from dissensus.runs import Record, key
from dissensus.studies._depth import DEPTHS, at_depth
from dissensus.studies._study import Request, Row, StudyRuns, Training
from dissensus.studies._views import over

_BIMP = "bimp"
# What is added to a GCN: skip connections or not, and the kind of normalisation.
ADDED: dict[str, tuple[bool, str]] = {
    "gcn": (False, "none"),
    "gcn + skip": (True, "none"),
    "gcn + norm": (False, "batch"),
    "gcn + skip + norm": (True, "batch"),
}


def _flags(point: Row) -> dict[str, Any]:
    if point["model"] == _BIMP:
        return at_depth(point)
    residual, norm = ADDED[point["added"]]
    return {**at_depth(point), "model.residual": residual, "model.norm": norm}


class Skips(Training):
    """The column ``added`` says what a GCN has; it is ``bimp`` for BIMP."""

    def plan(self, request: Request) -> StudyRuns:
        plan = super().plan(request)
        # By key, because nothing is added to BIMP: its runs come up again for each addition.
        return StudyRuns(list({key(config): config for config in plan.configs}.values()), plan.presets)

    def rows(self, record: Record) -> list[Row]:
        model = record.config["model"]
        made = model.get("residual"), model.get("norm")
        added = next((name for name, parts in ADDED.items() if parts == made), model["name"])
        return [{**row, "added": added} for row in super().rows(record)]


SKIPS = Skips(
    name="ablation-gcn",
    title="What skip connections and normalisation bring to a GCN",
    about=(
        "Test accuracy in per cent of a GCN with skip connections, with batch normalisation, with both and with "
        "neither, over depth, with the settings that were tuned for a GCN; BIMP with its own beside it."
    ),
    models=(_BIMP, "gcn-res"),
    datasets=("cora", "citeseer", "pubmed"),
    dimensions=("dataset", "added", "depth"),
    axes={"added": tuple(ADDED), "depth": DEPTHS[1:7]},
    flags=_flags,
    quick_models=("gcn-res",),
    quick_axes={"added": ("gcn", "gcn + skip"), "depth": (2, 8)},
    views=over(
        "depth",
        "Accuracy over depth of a GCN with skip connections and normalisation",
        "Test accuracy over depth, in per cent",
        of="added",
        loss=True,
        readme=(False, False),
    ),
)

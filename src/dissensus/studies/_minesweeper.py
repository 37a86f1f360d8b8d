"""ROC AUC over depth on the graph Minesweeper."""

from dissensus.studies._depth import at_depth
from dissensus.studies._study import Training
from dissensus.studies._views import over

MINESWEEPER = Training(
    name="minesweeper",
    title="Minesweeper over depth",
    about=(
        "ROC AUC in per cent on the ten fixed splits of Minesweeper: mines on a grid, with the count of mines around "
        "it known at about half of the cells. Settings are those of the preset tuned. Luo et al. (2024) print 97.86 "
        "for a tuned residual GCN (see the study tuned-gnn)."
    ),
    models=("bimp", "gcn", "gcn-res", "grand-l", "gcnii"),
    datasets=("minesweeper",),
    dimensions=("dataset", "model", "depth"),
    axes={"depth": (2, 4, 8, 16, 32)},
    flags=at_depth,
    quick_datasets=("minesweeper",),
    quick_axes={"depth": (2, 4)},
    views=over(
        "depth", "ROC AUC over depth", "ROC AUC over depth, in per cent", name="auc", y_label="ROC AUC (%)", facet=""
    ),
)

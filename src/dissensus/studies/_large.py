"""Accuracy on ogbn-arxiv."""

from dissensus.studies._accuracy import accuracy_views
from dissensus.studies._printed import printed
from dissensus.studies._study import Training

LARGE = Training(
    name="large",
    title="Accuracy on a large graph",
    about="Test accuracy in per cent at the best validation accuracy, on OGB's split of ogbn-arxiv.",
    models=printed("large").values("model"),
    datasets=printed("large").values("dataset"),
    quick_datasets=("ogbn-arxiv",),
    stand_in={"ogbn-arxiv": "arxiv-synthetic"},
    views=accuracy_views("Test accuracy on a large graph, in per cent"),
)

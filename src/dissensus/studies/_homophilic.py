"""Accuracy on six homophilic graphs, every model of the full table."""

from dissensus.studies._accuracy import accuracy_views
from dissensus.studies._printed import printed
from dissensus.studies._study import Training

HOMOPHILIC = Training(
    name="homophilic",
    title="Accuracy on homophilic graphs",
    about=(
        "Test accuracy in per cent at the best validation accuracy, on random splits with 20 training nodes a class. "
        "Splits 1-20 are set aside for tuning."
    ),
    models=printed("homophilic").values("model"),
    datasets=printed("homophilic").values("dataset"),
    views=accuracy_views("Test accuracy on homophilic graphs, in per cent"),
)

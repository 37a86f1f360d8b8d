"""Accuracy with few labels."""

from dissensus.studies._study import Training
from dissensus.studies._views import Details, Paired, over

LABELS = Training(
    name="labels",
    title="Accuracy with few labels",
    about=(
        "Test accuracy in per cent over the number of labelled nodes in a class, with all features, and the settings "
        "that were tuned for 20 labels a class."
    ),
    models=("bimp", "grand-l", "gcn", "gat", "sage", "label-propagation"),
    datasets=("cora", "citeseer", "pubmed"),
    dimensions=("dataset", "model", "labels"),
    axes={"labels": (1, 2, 5, 10, 20)},
    columns={"labels": "data.labels_per_class"},
    flags=lambda point: {"data.labels_per_class": point["labels"]},
    quick_axes={"labels": (1, 5)},
    views=(
        *over(
            "labels",
            "Accuracy over the number of labels",
            "Test accuracy by number of labels in a class, in per cent",
            x_label="labelled nodes in a class",
        )[:2],
        Paired(title="Paired tests, a split averaged over the numbers of labels", shown=True),
        Details(),
    ),
)

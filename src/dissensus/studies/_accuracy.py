"""What the accuracy tables share."""

from dissensus.studies._views import Details, Grid, Paired, Ranks, View


def accuracy_views(title: str, columns: str = "dataset") -> tuple[View, ...]:
    """The paper's table, every cell with interval and difference, BIMP's paired tests, and ranks over datasets."""
    return (
        Grid(name="accuracy", title=title, columns=columns, readme=True),
        Details(name="details", title="Each mean with its 95% interval, and the printed value", shown=True),
        Paired(name="paired", title="Paired tests over common splits", shown=True),
        Ranks(name="ranks", title="Ranks over datasets", readme=True),
    )

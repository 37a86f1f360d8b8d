"""What the accuracy tables share."""

from dissensus.studies._views import Details, Grid, Paired, View


def accuracy_views(title: str, columns: str = "dataset") -> tuple[View, ...]:
    """The paper's table, every cell with interval and difference, and the paired tests of BIMP."""
    return (
        Grid(name="accuracy", title=title, columns=columns, readme=True),
        Details(name="details", title="Each mean with its 95% interval, and the printed value", shown=True),
        Paired(name="paired", title="Paired tests over common splits", shown=True),
    )

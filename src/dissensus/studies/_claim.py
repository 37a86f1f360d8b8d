"""What is claimed of BIMP: its accuracy with the paper's settings and with ours, beside the printed one."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from dissensus.report import Table, Value
from dissensus.studies._as_printed import AS_PRINTED, UNCHANGED
from dissensus.studies._show import Cell, per_split
from dissensus.studies._study import Row

_COLUMNS = ("dataset", "printed", "the paper's settings", "best open choice", "with it", "our settings")


def claim(rows: Mapping[str, Sequence[Row]]) -> Table | None:
    """One row for each dataset of the accuracy tables, from the rows of each study by its name.

    The best of the choices that the paper leaves open has the highest mean validation accuracy, so that its test
    accuracy is not the best of many. None where nothing has been run with the paper's settings.
    """
    if not rows.get("as-printed"):
        return None
    body: list[list[Cell]] = []
    for dataset in AS_PRINTED.datasets:
        done = {name: _of_bimp(found, dataset) for name, found in rows.items()}
        choices: dict[str, list[Row]] = {}
        for row in done.get("readings", []):
            choices.setdefault(row["change"], []).append(row)
        best = max(choices, key=lambda name: fmean(per_split(choices[name], "val").values()), default=None)
        ours = [*done.get("homophilic", []), *done.get("heterophilic", [])]
        means = [_mean(found) for found in (done["as-printed"], choices.get(best or "", []), ours)]
        name = "none of them" if best == UNCHANGED else best
        printed = AS_PRINTED.printed.get({"model": "bimp", "dataset": dataset})
        body.append([dataset, printed, means[0], name, *means[1:]])
    title = "Test accuracy of BIMP in per cent: printed, with the paper's settings, and with ours"
    note = (
        "The best open choice is that of the study readings with the highest validation accuracy. The number of splits "
        "stands beside each mean; columns with different numbers are not paired."
    )
    return Table(_COLUMNS, body, title, note)


def _of_bimp(rows: Sequence[Row], dataset: str) -> list[Row]:
    wanted = ("done", "bimp", dataset)
    return [row for row in rows if (row["status"], row.get("model"), row.get("dataset")) == wanted]


def _mean(rows: Sequence[Row]) -> Value | None:
    found = per_split(rows, "test").values()
    return Value.of(found) if found else None

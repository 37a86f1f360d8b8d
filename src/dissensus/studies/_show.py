"""Studies as tables, charts, a page and a part of the README, from nothing but their rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from dissensus.errors import InputError, MissingExtraError
from dissensus.report import Curves, Diagram, Page, Panel, Series, Table, Value, draw_opinions
from dissensus.studies._bifurcation import DIAGRAMS, PANELS, lattice
from dissensus.studies._ranks import Ranking, draw_ranks, rank
from dissensus.studies._results import ordered
from dissensus.studies._study import Row, Study
from dissensus.studies._views import Details, Differences, Grid, Lines, Means, Paired, Pitchfork, Ranks, View

Rows = Sequence[Row]
Cell = str | float | Value | None

_HEADINGS = {"test": "test %", "seconds": "seconds"}


@dataclass(frozen=True)
class Shown:
    """A table or chart of a study, the stem of its files, and the view it comes from."""

    stem: str
    content: Table | Curves
    view: View


def items(study: Study, rows: Rows, *, noted: bool = True) -> list[Shown]:
    """Every table and chart of a study that has something to show; ``noted`` puts the study's notes below tables."""
    found, rows = [], _with_short_names(rows)
    for view in study.views:
        for facet, part in _facets(study, view, rows):
            content = _content(study, view, part, facet)
            if noted and isinstance(content, Table) and not isinstance(view, Paired):
                content = replace(content, note=" ".join(filter(None, [content.note, *notes(study, part)])))
            if content is not None:
                found.append(Shown(f"{view.name}-{_slug(facet)}" if facet else view.name, content, view))
    return found


def _with_short_names(rows: Rows) -> list[Row]:
    """The rows with models from files named without their folders, unless two of them would get the same name."""
    names = {str(row["model"]) for row in rows if row.get("model")}
    taken = Counter(Path(name).name for name in names)
    short = {name: Path(name).name for name in names if taken[Path(name).name] == 1}
    return [{**row, "model": short.get(row["model"], row["model"])} if row.get("model") else row for row in rows]


def write_files(study: Study, rows: Rows, folder: Path) -> tuple[list[Path], str]:
    """Write ``tables/*.csv``, ``figures/*.png`` and ``figures/*.svg`` below ``folder/STUDY``.

    Returns:
        The paths; and why there are no figures, empty if there are (they need matplotlib).
    """
    place, written, missing = folder / study.name, [], ""
    for item in items(study, rows):
        if isinstance(item.content, Table):
            path = place / "tables" / f"{item.stem}.csv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(item.content.csv(), encoding="utf-8")
            written.append(path)
    try:
        for item in items(study, rows):
            if isinstance(item.content, Curves):
                written += item.content.save(place / "figures" / item.stem)
        for view in study.views:
            if isinstance(view, Pitchfork):
                written += _pitchfork(rows, place / "figures" / view.name)
            if isinstance(view, Ranks) and (scores := _scores(study, rows, view.value)):
                found = rank(scores)
                paths = [place / "figures" / f"{view.name}.{suffix}" for suffix in ("png", "svg")]
                draw_ranks(paths, found.averages, found.critical, view.title)
                written += paths
    except MissingExtraError as error:
        missing = f"{study.name} has no figures: {error}"
    return written, missing


def add_section(page: Page, study: Study, rows: Rows, meta: Mapping[str, Any]) -> Page:
    """A section of the page: what was done, how it was made, all tables and charts."""
    # The day is enough here; meta.json has the second.
    made = f"Made on {meta['date'][:10]} with dissensus {meta['dissensus']}, torch {meta['torch']}, {meta['cpu']}."
    quick = "A quick look with a few epochs, to see that it works: the numbers mean nothing." if meta["quick"] else ""
    text = "\n\n".join(filter(None, [quick, study.about, *notes(study, rows), made]))
    shown = (item.content for item in items(study, rows, noted=False))
    return page.add(study.title, *shown, text=text, commands=meta["commands"])


def markdown(study: Study, rows: Rows, figures: str) -> str:
    """The part of a study that belongs in a README: tables as text, charts as links below the folder ``figures``."""
    parts = []
    for item in items(study, rows):
        if not item.view.readme:
            continue
        if isinstance(item.content, Table) and not isinstance(item.view, Ranks):
            parts.append(item.content.markdown())
        else:
            title = item.view.title if isinstance(item.content, Table) else item.content.title
            parts.append(f"![{title}]({(Path(figures) / study.name / 'figures' / item.stem).as_posix()}.svg)\n")
    return "\n".join(parts)


def update_readme(text: str, sections: Mapping[str, str]) -> tuple[str, list[str]]:
    """Put ``sections`` between the markers that bear their names; the new text, and the names that were found.

    A marker is ``<!-- results:NAME -->``, its end ``<!-- /results:NAME -->``.
    """
    found = []
    for name, section in sections.items():
        first, last = f"<!-- results:{name} -->", f"<!-- /results:{name} -->"
        before, begin, rest = text.partition(first)
        if not begin:
            continue
        _, end, after = rest.partition(last)
        if not end:
            raise InputError(f"the README has {first} without {last}: add it where the results end")
        text = f"{before}{first}\n{section.strip()}\n{last}{after}"
        found.append(name)
    return text, found


def cells(study: Study, rows: Rows, value: str) -> list[Row]:
    """One row for each cell of a study: its coordinates, mean, spread, interval, counts and printed value."""
    found = []
    for names, part in _groups(study, rows, study.dimensions):
        mean = _value(study, part, value)
        low, high = mean.interval if mean else (nan, nan)
        done = sum(row["status"] == "done" for row in part)
        found.append(
            {
                **dict(zip(study.dimensions, names, strict=True)),
                "mean": mean and mean.mean,
                "std": mean and mean.std,
                "low": low,
                "high": high,
                "n": mean.n if mean else 0,
                "runs": done,
                "failed": len(part) - done,
                "paper": study.printed.get(part[0]),
                "difference": mean and mean.difference,
                "preset": part[0].get("preset"),
            }
        )
    return found


def notes(study: Study, rows: Rows) -> list[str]:
    """What must be known beside the tables: failures, settings that are not those of the preset asked for."""
    found = []
    failed = [row for row in rows if row["status"] == "failed"]
    if failed:
        counts: dict[str, int] = {}
        for row in failed:
            name = " ".join(str(row.get(column)) for column in study.dimensions if row.get(column) is not None)
            counts[name] = counts.get(name, 0) + 1
        listed = ", ".join(f"{name} ({count})" for name, count in counts.items())
        found.append(f"Failed runs, left out of the means: {listed}. The first: {failed[0]['error']}")
    default = [row for row in rows if row.get("preset") == "default"]
    if default:
        pairs = dict.fromkeys(f"{row['model']} on {row['dataset']}" for row in default)
        which = "all" if len(default) == len(rows) else ", ".join(pairs)
        found.append(f"With default settings, not tuned ones: {which}.")
    return [*found, *study.notes(rows)]


def _content(study: Study, view: View, rows: Rows, facet: str) -> Table | Curves | None:
    title = f"{view.title}: {facet}" if facet else view.title
    match view:
        case Grid():
            return _grid(study, view, rows, title)
        case Differences():
            return _differences(study, view, rows, title)
        case Means():
            return _means(study, view, rows, title)
        case Details():
            return _details(study, view, rows, title)
        case Paired():
            return _paired(study, view, rows, title)
        case Ranks():
            scores = _scores(study, rows, view.value)
            return _ranks(rank(scores), title) if scores else None
        case Lines():
            return _lines(study, view, rows, title)
    return None


def _grid(study: Study, view: Grid, rows: Rows, title: str) -> Table | None:
    columns = ordered(study, view.columns, [row[view.columns] for row in rows if row[view.columns] is not None])
    if not columns:
        return None
    parts = dict(_groups(study, rows, (view.rows, view.columns)))
    base = {column: _cell(study, parts.get((view.relative_to, column), []), view.value) for column in columns}
    body: list[list[Cell]] = []
    for name in ordered(study, view.rows, [row[view.rows] for row in rows]):
        line = [_cell(study, parts.get((name, column), []), view.value) for column in columns]
        if view.relative_to:
            line = [_ratio(cell, base[column]) for cell, column in zip(line, columns, strict=True)]
        body.append([str(name), *line, *([_loss(line)] if view.loss else [])])
    headings = [view.rows, *map(str, columns), *(["loss"] if view.loss else [])]
    best = {heading: view.best for heading in headings[1:] if heading != "loss"} if view.best else {}
    return Table(headings, body, title, best=best)


def _differences(study: Study, view: Differences, rows: Rows, title: str) -> Table | None:
    columns = ordered(study, view.columns, [row[view.columns] for row in rows])
    parts = {
        (name, column): per_split(part, view.value, beside)
        for (column,), beside in _groups(study, rows, (view.columns,))
        for (name,), part in _groups(study, beside, (view.rows,))
    }
    body: list[list[Cell]] = []
    for name in ordered(study, view.rows, [row[view.rows] for row in rows]):
        pairs = [(parts.get((name, column), {}), parts.get((view.reference, column), {})) for column in columns]
        found = [[ours[split] - base[split] for split in ours if split in base] for ours, base in pairs]
        if name != view.reference:
            body.append([str(name), *(Value.of(numbers) if numbers else None for numbers in found)])
    return Table([view.rows, *map(str, columns)], body, title, fixed=list(map(str, columns))) if body else None


def _means(study: Study, view: Means, rows: Rows, title: str) -> Table:
    rows = _last(rows, view.last)
    body = [
        [str(name), *(_cell(study, part, value) for value in view.values)]
        for (name,), part in _groups(study, rows, (view.rows,))
    ]
    return Table([view.rows, *view.values.values()], body, title)


def _ratio(cell: Cell, base: Cell) -> Cell:
    if not isinstance(cell, Value) or not isinstance(base, Value):
        return None
    paper = None if cell.paper is None or not base.paper else cell.paper / base.paper
    return Value(cell.mean / base.mean, paper=paper)


def _loss(line: Sequence[Cell]) -> Cell:
    """The best mean of a row minus its last one; unknown where the last one is."""
    means = [cell.mean for cell in line if isinstance(cell, Value)]
    last = line[-1]
    return max(means) - last.mean if isinstance(last, Value) else None


def _details(study: Study, view: Details, rows: Rows, title: str) -> Table:
    heading = _HEADINGS.get(view.value, view.value)
    counts = ["samples", "runs", "failed"]
    columns = [*study.dimensions, heading, "95% from", "to", *counts, "paper", "difference", "settings"]
    body = [
        [
            *(None if cell[name] is None else str(cell[name]) for name in study.dimensions),
            cell["mean"] if cell["runs"] else "failed",
            cell["low"],
            cell["high"],
            *(cell["n"], cell["runs"], cell["failed"]),
            *(cell["paper"], cell["difference"], cell["preset"]),
        ]
        for cell in cells(study, rows, view.value)
    ]
    note = "A sample is a split, averaged over its training seeds; on a single split it is a seed."
    return Table(columns, body, title, note, fixed=["difference"])


def _paired(study: Study, view: Paired, rows: Rows, title: str) -> Table | None:
    rows = _last(rows, view.last)
    results = {
        str(name): samples
        for (name,), part in _groups(study, rows, (view.of,))
        if (samples := per_split(part, view.value, rows))
    }
    reference = results.pop(view.reference, {})
    # A test needs two splits in common: a table without any test says nothing.
    if not any(len(reference.keys() & samples.keys()) > 1 for samples in results.values()):
        return None
    return Table.paired(view.reference, {view.reference: reference, **results}, title)


def _scores(study: Study, rows: Rows, value: str) -> dict[str, dict[str, float]]:
    """The mean of each model on each dataset that all have, over the splits that all have there, since splits differ.

    Empty where there are too few models or datasets to rank.
    """
    samples: dict[str, dict[str, dict[Any, float]]] = {}
    for (dataset,), beside in _groups(study, rows, ("dataset",)):
        for (model,), part in _groups(study, beside, ("model",)):
            if found := per_split(part, value, beside):
                samples.setdefault(str(dataset), {})[str(model)] = found
    models = list(dict.fromkeys(model for by_model in samples.values() for model in by_model))
    scores: dict[str, dict[str, float]] = {model: {} for model in models}
    for dataset, by_model in samples.items():
        shared = set.intersection(*map(set, by_model.values())) if len(by_model) == len(models) else set()
        for model in models if shared else ():
            scores[model][dataset] = fmean(by_model[model][split] for split in shared)
    return scores if len(models) > 2 and len(scores[models[0]]) > 1 else {}


def _ranks(ranking: Ranking, title: str) -> Table:
    rows: list[list[Cell]] = [[name, average, *ranking.ranks[name]] for name, average in ranking.averages.items()]
    note = (
        f"Friedman's test that all models are equal: p = {ranking.p:.2g}. Two models differ at the 5% level where "
        f"their average ranks do by more than {ranking.critical:.2f} (Nemenyi). Ranked are means over the splits that "
        "all models have."
    )
    digits = {"average rank": 2, **dict.fromkeys(ranking.datasets, 1)}
    return Table(["model", "average rank", *ranking.datasets], rows, title, note, digits=digits)


def _lines(study: Study, view: Lines, rows: Rows, title: str) -> Curves | None:
    drawn = [name for name in {row[view.series] for row in rows} if name not in view.without]
    rows = [
        row
        for row in rows
        if row["status"] == "done" and row[view.series] in (view.only or drawn) and row.get(view.x) is not None
    ]
    by = (view.series, view.piece) if view.piece else (view.series,)
    series = [_series(study, view, str(name), part) for (name, *_), part in _groups(study, rows, by)]
    # One curve beside none, or points without a curve, are no chart.
    if (view.only and len(series) < 2) or all(len(set(line.x)) < 2 for line in series):
        return None
    if not any(isfinite(y) and (y > 0 or not view.y_log) for line in series for y in line.y):
        return None
    return Curves(series, view.x_label, view.y_label, title, view.x_log, view.y_log, y_floor=view.floor)


def _series(study: Study, view: Lines, name: str, rows: Rows) -> Series:
    if view.piece:
        # In the order of the rows, because a branch may turn back.
        points = [(row[view.x], Value(row[view.value])) for row in rows]
    else:
        places = [(key, part) for (key,), part in _groups(study, rows, (view.mean_over or view.x,))]
        if view.mean_over:
            places = [(fmean(row[view.x] for row in part), part) for _, part in places]
        points = [(x, _value(study, part, view.value) or Value(nan)) for x, part in places]
    low, high = view.within
    if view.quantiles:
        ends = [_quantiles(part, view.value) for _, part in places]
    else:
        ends = [(value.mean, *value.interval) for _, value in points]
    drawn = [band if low <= band[0] <= high else (nan, nan, nan) for band in ends]
    return Series(
        name,
        [x for x, _ in points],
        [y for y, _, _ in drawn],
        [low for _, low, _ in drawn],
        [high for _, _, high in drawn],
        dashed=bool(view.dashed and rows[0][view.dashed]),
    )


def _quantiles(rows: Rows, value: str) -> tuple[float, float, float]:
    """Median, 10% and 90% quantile, each a value that was measured; a value that is not finite counts as large."""
    found = sorted(number if isfinite(number) else inf for number in per_split(rows, value).values())
    return found[(len(found) - 1) // 2], found[len(found) // 10], found[-1 - len(found) // 10]


def _pitchfork(rows: Rows, stem: Path) -> list[Path]:
    rows = [row for row in rows if row["status"] == "done" and row["seed"] == rows[0]["seed"]]
    if not rows:
        return []
    critical = rows[0]["critical"]
    parts: dict[str, dict[Any, list[Row]]] = {}
    for row in rows:
        parts.setdefault(row["diagram"] or row["panel"], {}).setdefault(row["piece"], []).append(row)
    panels, marks = [], {}
    for name, words in PANELS.items():
        agents = list(parts[name].values())
        states = np.array([_column(agent, "opinion") for agent in agents]).T
        note = f"variance {states[-1].var():.2g}"
        panels.append(Panel(f"({name}) {words}", _column(agents[0], "time"), states, note))
        marks[name] = (name, agents[0][0]["attention"], agents[0][0]["z"], agents[0][-1]["z"])
    diagrams = []
    for name, words in DIAGRAMS.items():
        branches = [
            (_column(piece, "attention"), _column(piece, "z"), np.full(len(piece), not piece[0]["unstable"]))
            for piece in parts[name].values()
        ]
        # With input is panel (d) alone.
        shown = [mark for panel, mark in marks.items() if (panel == "d") == (name == "unfolding")]
        diagrams.append(Diagram(f"{name}, {words}", branches, critical, marks=shown))
    side = round(len(panels[0].states[0]) ** 0.5)
    files = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    from scipy.sparse import csr_array

    draw_opinions(files, diagrams, panels, csr_array(lattice(side)), "grid")
    return files


def _column(rows: Rows, name: str) -> np.ndarray:
    return np.array([row[name] for row in rows])


def _facets(study: Study, view: View, rows: Rows) -> list[tuple[str, Rows]]:
    if not view.facet:
        return [("", rows)]
    facet = (view.facet,) if isinstance(view.facet, str) else view.facet
    return [(", ".join(map(str, names)), part) for names, part in _groups(study, rows, facet) if None not in names]


def _groups(study: Study, rows: Rows, by: Sequence[str]) -> list[tuple[tuple[Any, ...], list[Row]]]:
    """Rows with equal values in some columns, in the order of the study."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(name) for name in by), []).append(row)
    ranks = [
        {value: i for i, value in enumerate(ordered(study, name, [k[n] for k in found]))} for n, name in enumerate(by)
    ]
    return sorted(found.items(), key=lambda item: [rank[value] for rank, value in zip(ranks, item[0], strict=True)])


def _last(rows: Rows, column: str) -> Rows:
    """The rows with the largest value of a column; failed ones without a value are kept, so that they are seen."""
    if not column:
        return rows
    most = max((row[column] for row in rows if row[column] is not None), default=None)
    return [row for row in rows if row[column] in (most, None)]


def per_split(rows: Rows, value: str, beside: Rows = ()) -> dict[Any, float]:
    """One number for each split, the mean over its seeds; where there is one split only, one for each seed.

    ``beside`` are rows that the numbers are paired with: then there must be one split in them as well.
    """
    done = [row for row in rows if row["status"] == "done" and row[value] is not None]
    unit = "split" if len({row["split"] for row in [*done, *beside]}) > 1 else "seed"
    found: dict[Any, list[float]] = {}
    for row in done:
        found.setdefault(row[unit], []).append(float(row[value]))
    return {name: fmean(numbers) for name, numbers in found.items()}


def _value(study: Study, rows: Rows, value: str) -> Value | None:
    samples = [number for number in per_split(rows, value).values() if isfinite(number)]
    return Value.of(samples, study.printed.get(rows[0])) if samples else None


def _cell(study: Study, rows: Rows, value: str) -> Cell:
    if not rows:
        return None
    if all(row["status"] == "failed" for row in rows):
        return f"failed ({len(rows)})"
    return _value(study, rows, value) or "not finite"


def _slug(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-." else "-" for letter in text.replace(", ", "-"))

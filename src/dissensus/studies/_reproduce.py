"""Studies from their runs to tables, figures, a page and the README; only what is missing is run."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dissensus import runs
from dissensus.errors import DissensusError, InputError, one_of
from dissensus.report import Curves, Page, Table
from dissensus.runs import Record
from dissensus.studies._claim import claim
from dissensus.studies._outlook import Outlook, outlook_of
from dissensus.studies._results import check_results, read_results, write_results
from dissensus.studies._show import add_section, cells, items, markdown, notes, update_readme, write_files
from dissensus.studies._study import CHOICES, Request, Row, Study, StudyRuns
from dissensus.studies._views import Details

Notify = Callable[[str], None]
_KEPT_FACTS = ("runs", "failed", "splits", "seeds", "preset", "quick")


@dataclass(frozen=True)
class StudyResult:
    """One study with all rows that its folder holds now.

    Attributes:
        study: what was asked.
        rows: one for each run (or several, for instance one a layer).
        meta: how they were made.
        files: tables and figures that were written.
        waiting: of an interrupted study, stored runs that wait for the others before they replace older ones.
    """

    study: Study
    rows: list[Row]
    meta: dict[str, Any]
    files: list[Path] = field(default_factory=list)
    waiting: int = 0

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by the stem of its file."""
        return {item.stem: item.content for item in items(self.study, self.rows) if isinstance(item.content, Table)}

    @property
    def figures(self) -> dict[str, Curves]:
        """Every chart by the stem of its file."""
        return {item.stem: item.content for item in items(self.study, self.rows) if isinstance(item.content, Curves)}

    @property
    def notes(self) -> list[str]:
        """What must be known beside the tables: failed runs, settings that are not those of the preset."""
        return notes(self.study, self.rows)

    def show(self) -> None:
        """Print the title and the main tables, with the notes below."""
        print(f"{self.study.title}\n")
        shown = [item.content for item in items(self.study, self.rows) if item.view.shown]
        tables = [content for content in shown if isinstance(content, Table)]
        for table in tables:
            table.show()
            print()
        if not tables:
            print("\n".join(self.notes))

    def as_dict(self) -> dict[str, Any]:
        """Plain values: counts, notes, every cell with its interval, paired tests, files."""
        facts = {name: self.meta.get(name) for name in _KEPT_FACTS}
        answer: dict[str, Any] = {"title": self.study.title, **facts, "notes": self.notes}
        value = next((view.value for view in self.study.views if isinstance(view, Details)), None)
        if value is not None:
            paired = {
                stem: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
                for stem, table in self.tables.items()
                if "paired" in stem
            }
            answer |= {"value": value, "cells": cells(self.study, self.rows, value), "paired": paired}
        return answer | {"files": [str(path) for path in self.files], "waiting": self.waiting}


@dataclass
class Reproduction:
    """What :func:`reproduce` made.

    Attributes:
        studies: each study that was made, by name.
        skipped: the reason for each study that was left out, by name.
        output: folder of tables, figures and page; None if nothing was written.
        source: folder that everything was rebuilt from; None if studies were run.
        page: the page over all studies in the folder.
        readme: names of the studies whose part of the README was rewritten; None without a README.
        interrupted: whether an interrupt (Ctrl-C) ended it early; finished runs are in the store.
        seconds: wall-clock time.
    """

    studies: dict[str, StudyResult] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    output: Path | None = None
    source: Path | None = None
    page: Path | None = None
    readme: list[str] | None = None
    interrupted: bool = False
    seconds: float = 0.0

    @property
    def failed(self) -> int:
        """Failed runs of all studies."""
        return sum(result.meta["failed"] for result in self.studies.values())

    def show(self) -> None:
        """Print the main tables of every study."""
        for result in self.studies.values():
            result.show()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as ``dissensus reproduce --json`` prints them."""
        listed: dict[str, Any] = {name: {"skipped": reason} for name, reason in self.skipped.items()}
        listed |= {name: result.as_dict() for name, result in self.studies.items()}
        paths = {"output": self.output, "from": self.source, "page": self.page}
        return {
            **{name: str(path) for name, path in paths.items() if path is not None},
            "studies": listed,
            **({} if self.readme is None else {"readme": self.readme}),
            "interrupted": self.interrupted,
            "seconds": self.seconds,
        }


def reproduce(
    names: str | Sequence[str],
    *,
    models: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    splits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    depths: Sequence[int] | None = None,
    only: Mapping[str, Sequence[Any]] | None = None,
    preset: str | None = None,
    quick: bool = False,
    synthetic: bool = False,
    store: str | Path | None = None,
    executor: str = "inline",
    workers: int | None = None,
    threads: int | None = None,
    address: str | None = None,
    retry_failed: bool = False,
    output: str | Path | None = None,
    source: str | Path | None = None,
    readme: str | Path | None = None,
    progress: Notify | None = None,
    notify: Notify | None = None,
) -> Reproduction:
    """Rebuild tables and figures of the paper, with the printed numbers beside ours.

    >>> reproduce("depth", models=["bimp"], datasets=["karate"], splits=[1], quick=True).studies["depth"].tables
    {...}

    Args:
        names: one study, several, or ``"all"``; see :data:`STUDIES`.
        models, datasets, splits, seeds, depths: what to run; None leaves the choice to the study.
        only: values of a study's axes to run alone, such as ``{"change": ["linear", "A_o = I"]}``.
        preset: where the settings of the models come from, in place of the study's own preset.
        quick: a tiny version of everything, to see that it works.
        synthetic: a generated graph in place of a dataset that cannot be downloaded.
        store: file that keeps finished runs and provides them again; None keeps them for this call only.
        executor: ``inline``, ``processes`` or ``ray``, with ``workers`` runs in parallel and ``threads`` for each;
            ``address`` is that of a running Ray cluster.
        retry_failed: repeat runs that failed before.
        output: folder for runs.csv, meta.json, tables, figures and the page, added to what is there; None writes
            nothing.
        source: rebuild everything from the ``runs.csv`` files in this folder, without running anything.
        readme: file whose tables between the markers ``<!-- results:NAME -->`` are rewritten.
        progress: called with a line after each run.
        notify: called with everything else that a reader should know while it runs.
    """
    begun = time.perf_counter()
    notify = notify or (lambda text: None)
    choices = {"models": models, "datasets": datasets, "splits": splits, "seeds": seeds, "depths": depths}
    request = _request(only=only, preset=preset, quick=quick, synthetic=synthetic, **choices)
    chosen, every = _chosen(names, request, rebuild=source is not None)
    for name, path in (("readme", readme), ("output", output)):
        if path is not None and Path(path).is_file() != (name == "readme"):
            cure = "there is no such file" if name == "readme" else "that is a file: name a folder"
            raise InputError(f"{name} {path}: {cure}")
    if source is not None:
        result = _rebuild(chosen, Path(source), Path(output or source), every=every, notify=notify)
    else:
        with tempfile.TemporaryDirectory() as folder:
            execution = {"executor": executor, "workers": workers, "threads": threads, "address": address}
            run = _Run(
                request,
                Path(store or Path(folder) / "runs.db"),
                Path(output) if output is not None else None,
                {**execution, "retry_failed": retry_failed},
                progress,
                notify,
            )
            result = run.studies(chosen)
    if result.output is not None:
        _publish(result, None if readme is None else Path(readme), notify)
    result.seconds = time.perf_counter() - begun
    return result


def outlook(names: str | Sequence[str], *, store: str | Path, **choices: Any) -> dict[str, Outlook]:
    """The runs that :func:`reproduce` would find in a store, and those it would make, with an estimate of their time.

    Args:
        names: as for :func:`reproduce`.
        store: file of finished runs; it need not exist.
        choices: ``models, datasets, splits, seeds, depths, only, preset, quick, synthetic`` as for :func:`reproduce`.

    Returns:
        An outlook for each study, with ``groups``, ``seconds`` and ``table()``.
    """
    request = _request(**choices)
    chosen, _ = _chosen(names, request, rebuild=False)
    finished = stored_runs(Path(store))
    return {study.name: outlook_of(study, study.plan(request), finished) for study in chosen}


def _request(**choices: Any) -> Request:
    given: dict[str, Any] = {
        k: tuple(value) if isinstance(value, list | range) else value for k, value in choices.items()
    }
    return Request(**given)


def _chosen(names: str | Sequence[str], request: Request, *, rebuild: bool) -> tuple[list[Study], bool]:
    """The studies by name and whether all were asked for, after what cannot work has been refused."""
    from dissensus.studies import STUDIES

    every = names == "all"
    wanted = list(STUDIES) if every else [names] if isinstance(names, str) else list(names)
    chosen = [STUDIES[one_of("study", name, STUDIES)] for name in wanted]
    narrowing = [name for name in CHOICES if getattr(request, name)]
    for name in ("quick", "synthetic", *narrowing) if rebuild else ():
        if getattr(request, name):
            raise InputError(f"rebuilding from files runs nothing: leave out {name}")
    for name in narrowing:
        if not any(name in study.takes for study in chosen):
            taken = ", ".join(chosen[0].takes)
            raise InputError(f"the study {chosen[0].name} does not use {name}: leave it out; it uses {taken}")
    for axis in request.only or ():
        axes = list(dict.fromkeys(name for study in chosen for name in getattr(study, "axes", ())))
        if axis not in axes:
            raise InputError(f"{axis!r} is no axis of these studies: choose among {', '.join(axes)}")
    if request.synthetic and not any(study.has_stand_in for study in chosen):
        raise InputError("synthetic is for the study large: leave it out, or reproduce large or all")
    return chosen, every


def stored_runs(store: Path) -> dict[str, Record]:
    """Finished runs of a store by their key; empty if there is no such file."""
    if not store.is_file():
        return {}
    with runs.Store(store, create=False) as opened:
        return {record.key: record for record in opened.query()}


@dataclass
class _Run:
    """One call of :func:`reproduce` that executes runs."""

    request: Request
    store: Path
    folder: Path | None
    execution: dict[str, Any]
    progress: Notify | None
    notify: Notify

    def studies(self, chosen: list[Study]) -> Reproduction:
        """Run what is missing, study by study, and write each as soon as it is complete; an interrupt ends early."""
        result = Reproduction(output=self.folder)
        plans = {study.name: study.plan(self.request) for study in chosen}
        alone = len(chosen) == 1
        for study in self._writable(chosen, result):
            planned, interrupted = plans[study.name], False
            try:
                try:
                    records = self._execute(study, planned)
                except KeyboardInterrupt:
                    interrupted = True
                    finished = stored_runs(self.store)
                    records = [finished[key] for key in map(runs.key, planned.configs) if key in finished]
                if records:
                    result.studies[study.name] = self._collect(study, planned, records, interrupted=interrupted)
            except DissensusError as error:
                if alone and not interrupted:
                    raise
                self._leave_out(study, error, result)
            else:
                if interrupted:
                    waiting = result.studies[study.name].waiting if records else 0
                    self.notify(self._so_far(study, len(records), len(planned.configs), waiting))
            if interrupted:
                result.interrupted = True
                break
        return result

    def _writable(self, chosen: list[Study], result: Reproduction) -> list[Study]:
        """The studies whose runs may be added to the folder; the others are left out before anything runs."""
        if self.folder is None:
            return chosen
        found = []
        for study in chosen:
            try:
                check_results(self.folder, study, quick=self.request.quick)
            except InputError as error:
                if len(chosen) == 1:
                    raise
                self._leave_out(study, error, result)
            else:
                found.append(study)
        if not found:
            raise InputError(f"no study can be written to {self.folder}: give another output folder")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.folder} cannot be created ({error.strerror}): give another folder") from error
        return found

    def _leave_out(self, study: Study, error: DissensusError, result: Reproduction) -> None:
        self.notify(f"{study.name} is left out: {error}")
        result.skipped[study.name] = str(error)

    def _so_far(self, study: Study, finished: int, planned: int, waiting: int) -> str:
        """Where the runs of an interrupted study are."""
        words = f"{study.name}: {finished} of {planned} runs are in {self.store}"
        if finished and self.folder is not None:
            words += f", and their tables in {self.folder}" if not waiting else (
                f", and the tables in {self.folder} keep runs of other settings in place of {waiting} of them "
                "until all are there"
            )  # fmt: skip
        return f"{words}; the same command makes the rest"

    def _execute(self, study: Study, planned: StudyRuns) -> list[Record]:
        options = dict(self.execution)
        with runs.Store(self.store) as store:
            missing = store.missing(planned.configs, retry_failed=options["retry_failed"])
        if missing:
            study.validate(missing)
        if study.serial and options["executor"] != "inline":
            options |= {"executor": "inline", "workers": None, "address": None}
            if self.progress:
                self.progress(f"{study.name}: one run at a time in this process, because time is measured")
        finished = 0

        def on_result(record: Record) -> None:
            nonlocal finished
            finished += 1
            if self.progress:
                words = f"[{finished}/{len(missing)}] {study.name}: {_line(study, record)} ({record.seconds:.1f} s)"
                self.progress(words)

        return runs.execute(planned.configs, study.target, store=self.store, on_result=on_result, **options).records

    def _collect(self, study: Study, planned: StudyRuns, records: list[Record], *, interrupted: bool) -> StudyResult:
        """Add the runs to the folder, and return all that it then holds of the study.

        A few runs of an interrupted study are no reason to drop many of other settings: they wait in the store.
        """
        rows = [_with_preset(row, planned) for record in records for row in study.rows(record)]
        meta = _facts(study, self.request, records)
        if self.folder is None:
            failed = sum(record.result is None for record in records)
            counted = {"runs": len(records) - failed, "failed": failed, "commands": [meta["command"]]}
            return StudyResult(study, rows, {**meta, **counted})
        written = write_results(self.folder, study, rows, meta, replace=not interrupted)
        result = _write(study, self.folder, self.folder, self.notify)
        if not interrupted:
            return result
        present = {row["settings"] for row in written}
        waiting = sum(study.rows(record)[0]["settings"] not in present for record in records)
        return StudyResult(result.study, result.rows, result.meta, result.files, waiting)


def _line(study: Study, record: Record) -> str:
    row = study.rows(record)[-1]
    names = [Path(str(row[name])).name for name in study.dimensions if row.get(name) is not None]
    result = f"failed, {record.error}" if record.result is None else "done"
    if record.result is not None and row.get("test") is not None:
        result = f"test {row['test']:.2f} validation {row['val']:.2f} epoch {row['epoch']}"
    return f"{' '.join(names)} split {row['split']} seed {row['seed']}: {result}"


def _with_preset(row: Row, planned: StudyRuns) -> Row:
    preset = planned.presets.get(row["settings"])
    return row if preset is None else {**row, "preset": preset}


def _facts(study: Study, request: Request, records: list[Record]) -> dict[str, Any]:
    settings = {study.rows(record)[0]["settings"]: record.config for record in records}
    threads = sorted({record.provenance.get("threads") or 0 for record in records})
    preset = request.preset or study.preset
    return {**Page.provenance(), "threads": threads, "preset": preset, "quick": request.quick, "settings": settings}


def _rebuild(chosen: list[Study], source: Path, folder: Path, *, every: bool, notify: Notify) -> Reproduction:
    """Everything from the CSV files alone."""
    if every:
        chosen = [study for study in chosen if (source / study.name).is_dir()]
        if not chosen:
            raise InputError(f"{source} holds no results: make some with 'dissensus reproduce STUDY -o {source}'")
    result = Reproduction(output=folder, source=source)
    for study in chosen:
        result.studies[study.name] = _write(study, source, folder, notify)
    return result


def _write(study: Study, source: Path, folder: Path, notify: Notify) -> StudyResult:
    """Tables and figures of a study from its CSV file."""
    rows, meta = read_results(source, study)
    files, missing = write_files(study, rows, folder)
    if missing:
        notify(missing)
    return StudyResult(study, rows, meta, files)


def _publish(result: Reproduction, readme: Path | None, notify: Notify) -> None:
    """The page over all results in the folder, and the README."""
    from dissensus.studies import STUDIES

    assert result.output is not None
    source = result.source or result.output
    # Links in a README are relative to where it stands.
    figures = Path(os.path.relpath(result.output, (readme or Path()).parent)).as_posix()
    page = Page("Opinion dissensus, reproduced", "Our numbers beside the printed ones.")
    sections, found = {}, {}
    for study in STUDIES.values():
        if not (source / study.name / "runs.csv").is_file():
            continue
        try:
            rows, meta = read_results(source, study)
        except InputError as error:  # of an earlier call: no reason to lose the page of the others
            notify(f"{study.name} is left out of the page: {error}")
            continue
        add_section(page, study, rows, meta)
        sections[study.name] = markdown(study, rows, figures)
        found[study.name] = rows
    claimed = claim(found)
    if claimed is not None:
        page.add("What is claimed", claimed)
        sections["claim"] = claimed.markdown()
    if sections:
        result.page = page.write(result.output / "report.html")
        notify(f"wrote {result.page}")
    if readme is not None and result.interrupted:
        notify(f"{readme} stays as it is until all runs are there")
    elif readme is not None:
        text, result.readme = update_readme(readme.read_text(encoding="utf-8"), sections)
        readme.write_text(text, encoding="utf-8")
        notify(f"updated in {readme}: {', '.join(result.readme) or 'nothing, as it has no markers'}")

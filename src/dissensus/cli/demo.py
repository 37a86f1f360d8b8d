"""Train a graph convolutional network (GCN) and BIMP at depths 2, 8, 32 and 128 on an embedded graph of handwritten
digits, print accuracy, Dirichlet energy and effective rank by depth, and write a report page."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dissensus.report import Page, Table
    from dissensus.studies.demo import Outcome

_INTRO = (
    "Handwritten digits, 1,797 of them, each joined to the most similar ones; 20 of each kind are labelled, the rest "
    "are to be classified. A graph convolutional network averages over neighbours in every layer, which is linear "
    "consensus: deep enough, all nodes agree and nothing is left to classify by. BIMP replaces it by nonlinear opinion "
    "dynamics, which keeps disagreement at any depth.\n\n"
    "Both have 32 channels, the same training nodes, optimiser and number of epochs. Depth is the number of layers of "
    "the GCN, and of Euler steps of BIMP."
)
_NAMES = {"gcn": "GCN", "bimp": "BIMP"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="dissensus-demo.html", metavar="FILE", help="the report page")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the graph for each model")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")


def run(args: argparse.Namespace) -> int:
    from dissensus.errors import InputError
    from dissensus.studies import demo

    if args.epochs < 1:
        raise InputError(f"--epochs is {args.epochs}: give at least 1")
    with _Live(len(demo.DEPTHS) * len(demo.MODELS), args.epochs) as live:
        outcomes = []
        for outcome in demo.run(epochs=args.epochs, progress=live.epoch):
            outcomes.append(outcome)
            live.finished(outcome)
    path = _page(outcomes).write(args.output)
    if args.json:
        print(json.dumps({"report": str(path), "outcomes": [asdict(outcome) for outcome in outcomes]}))
        return 0
    _table(outcomes).show()
    deepest = {outcome.model: outcome for outcome in outcomes if outcome.depth == max(demo.DEPTHS)}
    print(
        f"\nAt {max(demo.DEPTHS)} layers GCN classifies {deepest['gcn'].accuracy:.1f} % of the test nodes right, "
        f"BIMP {deepest['bimp'].accuracy:.1f} %.\nThe report: {path}\n"
        "Next: dissensus train karate --model bimp, or a graph of your own: dissensus train --help"
    )
    return 0


def _table(outcomes: "list[Outcome]") -> "Table":
    from dissensus.report import Table

    columns = ["depth"]
    for name in _NAMES.values():
        columns += [f"{name} accuracy", f"{name} energy", f"{name} rank"]
    rows: list[list[Any]] = []
    for depth in sorted({outcome.depth for outcome in outcomes}):
        row: list[Any] = [depth]
        for model in _NAMES:
            found = next(o for o in outcomes if (o.model, o.depth) == (model, depth))
            row += [found.accuracy, found.energy, found.rank]
        rows.append(row)
    return Table(
        columns,
        rows,
        caption="Test accuracy, Dirichlet energy and effective rank by depth",
        note="Accuracy in per cent, of one split and one seed. Energy and rank are of the last hidden state: an energy "
        "near zero and a rank near one mean that all nodes agree.",
        digits={name: 3 if name.endswith("energy") else 1 for name in columns},
    )


def _page(outcomes: "list[Outcome]") -> "Page":
    from dissensus.report import Curves, Page, Series

    def by_depth(read: "Callable[[Outcome], float]") -> list[Series]:
        return [
            Series(
                name, [o.depth for o in outcomes if o.model == model], [read(o) for o in outcomes if o.model == model]
            )
            for model, name in _NAMES.items()
        ]

    def chart(series: list[Series], x_label: str, y_label: str, y_log: bool = False) -> Curves:
        return Curves(series, x_label=x_label, y_label=y_label, x_log=True, y_log=y_log)

    deepest = [o for o in outcomes if o.depth == max(o.depth for o in outcomes)]
    page = Page("Deep without consensus", _INTRO)
    page.add("By depth", _table(outcomes), chart(by_depth(lambda o: o.accuracy), "depth", "test accuracy (%)"))
    page.add(
        "What is left of the differences",
        chart(by_depth(lambda o: o.energy), "depth", "Dirichlet energy", y_log=True),
        chart(by_depth(lambda o: o.rank), "depth", "effective rank"),
        text="Measured on the last hidden state of each trained model.",
    )
    page.add(
        f"Inside the networks of depth {deepest[0].depth}",
        chart(
            [Series(_NAMES[o.model], o.layers, o.energies) for o in deepest], "layer", "Dirichlet energy", y_log=True
        ),
        chart([Series(_NAMES[o.model], o.layers, o.ranks) for o in deepest], "layer", "effective rank"),
        text="Measured from layer to layer of one trained network.",
    )
    return page


class _Live:
    """Progress on standard error: live bars on a terminal, one line for each model elsewhere."""

    def __init__(self, total: int, epochs: int) -> None:
        self._total, self._epochs, self._done = total, epochs, 0
        self._bar: Any = None

    def __enter__(self) -> "_Live":
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description:<38}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self._overall = self._bar.add_task("models", total=self._total)
            self._current = self._bar.add_task("loading", total=self._epochs)
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def epoch(self, model: str, depth: int, epoch: Any) -> None:
        if self._bar is not None:
            text = f"{_NAMES[model]} depth {depth}: validation {epoch.val:.1f} %"
            self._bar.update(self._current, description=text, completed=epoch.number)

    def finished(self, outcome: "Outcome") -> None:
        self._done += 1
        text = (
            f"{_NAMES[outcome.model]:<4} depth {outcome.depth:>3}: {outcome.accuracy:5.1f} %  ({outcome.seconds:.1f} s)"
        )
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
            self._bar.update(self._overall, completed=self._done)
        else:
            print(text, file=sys.stderr, flush=True)

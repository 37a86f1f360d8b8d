"""Progress of training on standard error: a live bar on a terminal, plain lines elsewhere."""

import sys
from typing import TYPE_CHECKING, Any, Self

from dissensus.cli._common import say

if TYPE_CHECKING:
    from dissensus.runs import Attempt
    from dissensus.train import Config, Epoch

# Number of lines for each run if there is no terminal.
_LINES = 5


class Progress:
    """Shows epochs (of runs in this process) and finished runs."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet, self._finished = quiet, 0
        self._bar: Any = None
        self._runs: Any = None
        self._epochs: Any = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(file=sys.stderr), transient=True)
            self._runs = self._bar.add_task("runs", total=None)
            self._epochs = self._bar.add_task("epochs", total=None, visible=False)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def epoch(self, config: "Config", epoch: "Epoch") -> None:
        """One epoch has ended."""
        total = config.train.epochs
        if self._bar is not None:
            text = f"loss {epoch.loss:.4f}  validation {epoch.val:5.2f}"
            self._bar.update(self._epochs, description=text, completed=epoch.number, total=total, visible=True)
        elif not self._quiet and epoch.number % max(1, total // _LINES) == 0:
            say(
                f"split {config.data.split} seed {config.train.seed} epoch {epoch.number}/{total}: "
                f"loss {epoch.loss:.4f} validation {epoch.val:.2f}"
            )

    def run(self, record: "Attempt", total: int) -> None:
        """One run of ``total`` has ended."""
        self._finished += 1
        where = f"split {record.config['data']['split']} seed {record.config['train']['seed']}"
        text = f"failed, {record.error}"
        if (found := record.result) is not None:
            text = f"test {found['test']:.2f} validation {found['val']:.2f} epoch {found['epoch']}"
        text = f"[{self._finished}/{total}] {where}: {text} ({record.seconds:.1f} s)"
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
            self._bar.update(self._runs, completed=self._finished, total=total)
        elif not self._quiet:
            say(text)

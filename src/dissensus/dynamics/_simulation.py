"""What a simulation gives: opinions over time, a verdict, tables, files and figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from dissensus.dynamics._convert import AnyGraph, as_matrix
from dissensus.dynamics._files import load_arrays, save_arrays, write_csv
from dissensus.dynamics._system import System
from dissensus.errors import InputError, optional
from dissensus.report import Panel, draw_opinions

Verdict = Literal["consensus", "dissensus", "polarised", "oscillating"]


@dataclass(frozen=True)
class SimulationSummary:
    """What the agents came to.

    Attributes:
        verdict: of the state that opinions tend to (:attr:`Simulation.limit`). ``consensus``, all agents agree on every
            option; ``polarised``, on some option the agents form two camps of opposite sign; ``oscillating``, opinions
            keep changing however long they are followed (or grow without bound, under a saturation that has none);
            ``dissensus`` otherwise.
        neutral: every opinion tends to zero; a consensus.
        settled: the last state is already there.
        mean: over the agents in the last state, [o].
        variance: over the agents in the last state, [o].
        spread: largest minus smallest opinion of the last state, [o].
    """

    verdict: Verdict
    neutral: bool
    settled: bool
    mean: tuple[float, ...]
    variance: tuple[float, ...]
    spread: tuple[float, ...]

    def __str__(self) -> str:
        """In words, such as ``neutral consensus``, or ``fading to neutral consensus`` where it is not reached yet."""
        way = (
            "" if self.settled or self.verdict == "oscillating" else "fading to " if self.neutral else "on the way to "
        )
        return f"{way}{'neutral ' * self.neutral}{self.verdict}"


@dataclass(frozen=True)
class Simulation:
    """Opinions over time.

    Attributes:
        times: [steps]
        states: [steps, n, o]; of an ensemble [steps, batch, n, o].
        model: its name.
        attention: of agents with :class:`Feedback`, [steps, n] or [steps, batch, n]; None without.
        system: agents and parameters of a nonlinear model with constant influence, otherwise None.
    """

    times: Tensor
    states: Tensor = field(repr=False)
    model: str
    attention: Tensor | None = field(default=None, repr=False)
    system: System | None = field(default=None, repr=False)
    # From last states and the size of each run, [batch, n, o] and [batch], to the limits of the states.
    _follow: Callable[[Tensor, Tensor], Tensor] | None = field(default=None, repr=False, compare=False)
    _limits: Tensor | None = field(default=None, repr=False, compare=False)

    @property
    def final(self) -> Tensor:
        """The last state, [n, o] or [batch, n, o]."""
        return self.states[-1]

    @property
    def mean(self) -> Tensor:
        """Over the agents, [steps, o] or [steps, batch, o]."""
        return self.states.mean(-2)

    @property
    def variance(self) -> Tensor:
        """Over the agents, [steps, o] or [steps, batch, o]."""
        return self.states.var(-2, correction=0)

    def run(self, index: int) -> Simulation:
        """One run of an ensemble."""
        if self.states.dim() == 3:
            raise InputError("this is a single run: only an ensemble, of x0 [batch, n, o], has several")
        attention = None if self.attention is None else self.attention[:, index]
        system = None if self.system is None or self.system.batch is not None else self.system
        limits = self._limit()[index : index + 1]
        return replace(self, states=self.states[:, index], attention=attention, system=system, _limits=limits)

    @property
    def limit(self) -> Tensor:
        """Where opinions tend to after the last state, [n, o] or [batch, n, o]; NaN in runs that keep changing.

        Zero where they are known to fade (:meth:`System.fades`). Else last states that still move are followed on, up
        to a time of 6400/damping. With noise, and under influence that changes in time, it is the last state.
        """
        return self._limit().reshape(self.final.shape)

    def _limit(self) -> Tensor:
        """[batch, n, o], also of a single run."""
        if self._limits is None:
            states = self._runs()
            found = states[-1] if self._follow is None else self._follow(states[-1], states.abs().amax((0, 2, 3)))
            object.__setattr__(self, "_limits", found)
        assert self._limits is not None
        return self._limits

    def summary(self, tol: float = 0.01) -> SimulationSummary:
        """What a single run came to, or is on its way to.

        Args:
            tol: differences up to this count as none, relative to the largest opinion that was ever held.

        Two camps are a sign that at least a tenth of the agents have each, with 90 per cent of the variance between the
        camps (of a normal distribution it would be 64 per cent).
        """
        if self.states.dim() == 4:
            raise InputError("this is an ensemble: ask for run(k).summary(), or outcomes()")
        (verdict,), neutral, settled = self._verdicts(tol)
        x = self.final.detach()
        statistics = x.mean(0), x.var(0, correction=0), x.amax(0) - x.amin(0)
        return SimulationSummary(
            verdict, bool(neutral), bool(settled), *(tuple(value.tolist()) for value in statistics)
        )

    def outcomes(self, tol: float = 0.01) -> dict[str, int]:
        """How many runs of an ensemble came to which verdict (see :meth:`summary`), the most frequent first."""
        return dict(Counter(self._verdicts(tol)[0]).most_common())

    def _verdicts(self, tol: float) -> tuple[list[Verdict], Tensor, Tensor]:
        """Verdict, neutral and settled of every run."""
        states, limit = self._runs(), self._limit()
        moving = limit.isnan().any(2).any(1)
        x, scale = torch.where(moving[:, None, None], states[-1], limit), tol * states.abs().amax((0, 2, 3))[:, None]
        spread = x.amax(1) - x.amin(1)
        neutral = ~moving & (x.abs().amax((1, 2)) <= scale[:, 0])
        settled = ~moving & ((states[-1] - x).abs().amax((1, 2)) <= scale[:, 0])
        polarised = (_polarised(x) & (spread > scale)).any(1)
        agreed = (spread <= scale).all(1)
        names: list[Verdict] = ["dissensus", "polarised", "consensus", "oscillating"]
        codes = torch.where(agreed, 2, polarised.long()).masked_fill(moving, 3)
        return [names[code] for code in codes.tolist()], neutral, settled

    def _runs(self) -> Tensor:
        """[steps, batch, n, o], also of a single run."""
        return self.states.detach().reshape(len(self.states), -1, *self.states.shape[-2:])

    def report(self) -> dict[str, Any]:
        """What a single run came to, as JSON has it: sizes, attention and :meth:`summary`."""
        agents, options = self.final.shape
        attention = critical = None
        if self.system is not None and not self.system.changing:
            attention = self.system.attention
            attention = float(attention) if np.ndim(attention) == 0 else None
            critical = self.system.critical_attention()
        return {
            "agents": agents,
            "options": options,
            "model": self.model,
            "attention": attention,
            "critical_attention": critical,
            "time": float(self.times[-1]),
            **asdict(self.summary()),
        }

    def __str__(self) -> str:
        """:meth:`report` in words; of an ensemble, :meth:`outcomes`."""
        if self.states.dim() == 4:
            counts = ", ".join(f"{name} {count}" for name, count in self.outcomes().items())
            return f"{self.states.shape[1]} runs of the {self.model} model: {counts}"
        found = self.report()
        sizes = ", ".join(f"{found[k]} {k.removesuffix('s') if found[k] == 1 else k}" for k in ("agents", "options"))
        lines = [f"{sizes}, model {self.model}"]
        if found["attention"] is not None:
            critical = found["critical_attention"]
            lines.append(
                f"attention {found['attention']:.6g}, critical {'none' if critical is None else f'{critical:.6g}'}"
            )
        lines.append(str(self.summary()))
        for option, (mean, variance) in enumerate(zip(found["mean"], found["variance"], strict=True)):
            lines.append(f"option {option} at time {found['time']:g}: mean {mean:.4g}, variance {variance:.4g}")
        return "\n".join(lines)

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of a long table: (run,) time, agent, option, opinion."""
        names = (["run"] if self.states.dim() == 4 else []) + ["agent", "option"]
        values = self.states.detach().numpy()
        index = np.indices(values.shape).reshape(values.ndim, -1)
        columns = {"time": self.times.numpy()[index[0]], **dict(zip(names, index[1:], strict=True))}
        return {**columns, "opinion": values.ravel()}

    def to_dataframe(self) -> Any:
        """A pandas table with the columns (run,) time, agent, option, opinion."""
        return optional("pandas", "pandas").DataFrame(self.columns())

    def save(self, path: str | Path) -> None:
        """Write times, states and verdict to an ``.npz`` file, for :meth:`load`; or :meth:`columns` to a ``.csv``."""
        if Path(path).suffix == ".csv":
            return write_csv(path, [self.columns()])
        arrays = {"times": self.times, "states": self.states, "limits": self._limit()}
        if self.attention is not None:
            arrays["attention"] = self.attention
        about = {"model": self.model}
        return save_arrays(path, "simulation", about, {name: value.detach().numpy() for name, value in arrays.items()})

    @classmethod
    def load(cls, path: str | Path) -> Simulation:
        """A simulation that :meth:`save` wrote; without its system."""
        about, arrays = load_arrays(path, "simulation")
        found = {name: torch.from_numpy(values) for name, values in arrays.items()}
        attention = found.get("attention")
        return cls(found["times"], found["states"], about["model"], attention, _limits=found["limits"])

    def plot(self, path: str | Path | Sequence[Path] | None = None, *, graph: AnyGraph = None, shape: str = "") -> Any:
        """Opinions over time, and the agents on their graph where it is known; a matplotlib figure.

        Args:
            path: also write the figure there (or to all of several files): ``.png``, ``.svg`` or ``.pdf``.
            graph: of any kind that :func:`as_matrix` takes; None is that of the system.
            shape: ``grid``, ``cycle`` or ``complete`` where the graph is known to be one, to draw it as one.

        Of an ensemble, the mean opinion of each run is drawn.
        """
        states = self.states.detach().numpy()
        words = ", ".join(f"{name} {count}" for name, count in self.outcomes().items())
        matrix = None
        if states.ndim == 3:
            words = str(self.summary())
            if graph is not None:
                matrix = as_matrix(graph)
            elif self.system is not None and not self.system.effective:
                matrix = self.system.communication
        states = states.mean(2) if states.ndim == 4 else states
        panels = []
        for option in range(states.shape[2]):
            title = f"option {option}" if states.shape[2] > 1 else f"{self.model} opinions"
            x, note = states[:, :, option], words
            if self.states.dim() == 4:
                title += ", mean of each run"
            else:
                note += f"\nmean {x[-1].mean():.2g}, variance {x[-1].var():.2g}"
            panels.append(Panel(title, self.times.numpy(), x, note))
        files = [] if path is None else [Path(path)] if isinstance(path, str | Path) else list(path)
        return draw_opinions(files, panels=panels, matrix=matrix, shape=shape)


def _polarised(x: Tensor) -> Tensor:
    """Whether the agents form two camps of opposite sign, [batch, n, o] -> [batch, o]."""
    camps = torch.stack([x > 0, x <= 0]).to(x.dtype)
    sizes, sums = camps.sum(2), (camps * x).sum(2)
    between = (sums.square() / sizes.clamp_min(1.0)).sum(0)
    total, n = x.square().sum(1), x.shape[1]
    variance = total - x.sum(1).square() / n
    return (sizes.amin(0) >= max(1.0, 0.1 * n)) & (total - between <= 0.1 * variance)

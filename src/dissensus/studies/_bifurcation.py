"""The pitchfork and its unfolding, and opinions on a lattice below, at and above the critical attention."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dissensus.runs import Record, RunConfig, key
from dissensus.studies._study import Request, Row, Study, StudyRuns
from dissensus.studies._views import Lines, Pitchfork

if TYPE_CHECKING:
    import numpy as np

DIAGRAMS = {"pitchfork": "without input", "unfolding": "with input"}
PANELS = {
    "a": "u < u*, without input",
    "b": "u > u*, without input",
    "c": "u = u*, without input",
    "d": "u = u*, with input",
    "e": "u > u*, without input, reversed",
}
_BRANCH = ("diagram", "curve", "piece", "attention", "z", "unstable")
_COURSE = ("panel", "curve", "piece", "attention", "z", "time", "opinion")


def run_bifurcation(config: RunConfig) -> dict[str, Any]:
    """Equilibria over the attention, and opinions on a lattice: :func:`dissensus.dynamics.regimes` with its defaults.

    Args:
        config: ``side`` of the lattice, ``damping``, ``self_reinforcement``, and ``seed`` of the initial opinions.

    Returns:
        ``critical``: u*; ``branches``: lists of ``diagram, curve, piece, attention, z, unstable``, with the weighted
        average opinion z; ``courses``: lists of ``panel, curve, piece, attention, z, time, opinion``, a piece being an
        agent.
    """
    from dissensus import dynamics

    agents = config["side"] ** 2
    common = {name: config[name] for name in ("seed", "damping", "self_reinforcement")}
    found = dynamics.regimes(lattice(config["side"]), **common)
    critical = found.plain.critical
    branches, courses = [], []
    for name, diagram in (("pitchfork", found.plain), ("unfolding", found.unfolded)):
        for number, branch in enumerate(diagram.branches):
            branches += _branch(name, number, branch)
    for panel, done in found.runs.items():
        # Every fourth time, the last one included, is enough for a curve.
        times, opinions = done.times[::4].tolist(), done.states[::4, :, 0].numpy()
        attention, averages = _short(found.attention[panel] * critical), opinions @ found.plain.weights[:, 0]
        courses += [
            [panel, "agents", agent, attention, _short(z), _short(t), _short(row[agent])]
            for agent in range(agents)
            for t, z, row in zip(times, averages.tolist(), opinions.tolist(), strict=True)
        ]
    return {"critical": _short(critical), "branches": branches, "courses": courses}


def _short(value: float) -> float:
    """Seven digits are more than any figure shows."""
    return float(f"{value:.7g}")


def lattice(side: int) -> "np.ndarray":
    """Adjacency of a square lattice, [side^2, side^2], nodes row by row."""
    import numpy as np

    path = np.eye(side, k=1) + np.eye(side, k=-1)
    return np.kron(np.eye(side), path) + np.kron(path, np.eye(side))


def _branch(diagram: str, number: int, branch: Any) -> list[list[Any]]:
    """A branch cut where stability changes; neighbouring pieces share their end."""
    stable = branch.stable.tolist()
    kinds = [a and b for a, b in pairwise(stable)]
    points: list[list[Any]] = []
    piece = 0
    for index, (u, z) in enumerate(zip(branch.parameter.tolist(), branch.z.tolist(), strict=True)):
        before = kinds[index - 1] if index else kinds[0]
        after = kinds[index] if index < len(kinds) else before
        place = [_short(u), _short(z)]
        points.append([diagram, branch.name, f"{number}/{piece}", *place, not before])
        if before != after:
            piece += 1
            points.append([diagram, branch.name, f"{number}/{piece}", *place, not after])
    return points


@dataclass(frozen=True, kw_only=True)
class BifurcationStudy(Study):
    """One run."""

    def plan(self, request: Request) -> StudyRuns:
        common = {"side": 4 if request.quick else 5, "damping": 1.0, "self_reinforcement": 1.0}
        return StudyRuns([{**common, "seed": seed} for seed in request.seeds or (1,)])

    def rows(self, record: Record) -> list[Row]:
        config = record.config
        settings = key({name: value for name, value in config.items() if name != "seed"})[:12]
        base = {"split": config["seed"], "seed": config["seed"], "status": record.status, "settings": settings}
        result = record.result or {"critical": None, "branches": [[None] * 6], "courses": []}
        common = {**base, "critical": result["critical"], "finished": record.finished, "error": record.error}
        empty = dict.fromkeys((*_BRANCH, *_COURSE))
        points = [
            *(dict(zip(_BRANCH, point, strict=True)) for point in result["branches"]),
            *(dict(zip(_COURSE, point, strict=True)) for point in result["courses"]),
        ]
        return [{**empty, **point, **common} for point in points]

    def order(self, column: str) -> tuple[str, ...]:
        return {"diagram": tuple(DIAGRAMS), "panel": tuple(PANELS)}.get(column, ())


BIFURCATION = BifurcationStudy(
    name="bifurcation",
    title="Bifurcation of opinions",
    about=(
        "Nonlinear opinion dynamics of agents on a square lattice. Without input the neutral state loses stability at "
        "the critical attention u*, in a pitchfork; with input the pitchfork unfolds. The panels start from the same "
        "opinions: (a) below u*, a neutral consensus; (b) above u*, dissensus of low variance; (c) at u*, a slow "
        "approach to a neutral consensus; (d) at u* with input, dissensus of high variance; (e) is (b) from the "
        "reversed start. 'dissensus bifurcation' draws the same for any graph."
    ),
    dimensions=("diagram", "panel", "curve", "piece"),
    target="dissensus.studies:run_bifurcation",
    views=(
        Pitchfork(name="bifurcation", title="Bifurcation of opinions"),
        Lines(
            name="diagram",
            title="Equilibria",
            value="z",
            facet="diagram",
            x="attention",
            series="curve",
            piece="piece",
            dashed="unstable",
            x_label="attention u",
            y_label="weighted average opinion z",
        ),
        Lines(
            name="panel",
            title="Opinions of agents over time",
            value="opinion",
            facet="panel",
            x="time",
            series="curve",
            piece="piece",
            x_log=True,
            x_label="time",
            y_label="opinion",
        ),
    ),
)

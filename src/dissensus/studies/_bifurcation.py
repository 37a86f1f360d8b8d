"""The pitchfork and its unfolding, and opinions on a lattice below, at and above the critical attention."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dissensus.runs import Record, key
from dissensus.studies._study import Config, Plan, Request, Row, Study
from dissensus.studies._views import Lines, Pitchfork

if TYPE_CHECKING:
    import numpy as np

    from dissensus.dynamics import Branch

DIAGRAMS = {"pitchfork": "without input", "unfolding": "with input"}
# panel -> attention relative to u*, whether there is input
PANELS = {"a": (0.5, False), "b": (1.5, False), "c": (1.0, False), "d": (1.0, True)}
_BRANCH = ("diagram", "curve", "piece", "attention", "z", "unstable")
_COURSE = ("panel", "curve", "piece", "time", "opinion")


def run_bifurcation(config: Config) -> dict[str, Any]:
    """Equilibria over the attention, and four simulations from one start, of agents on a square lattice.

    Args:
        config: ``side`` of the lattice, ``damping``, ``self_reinforcement``, ``input`` (mean of a random input that
            differs between agents), ``time`` and ``seed`` of start and input.

    Returns:
        ``critical``: u*; ``branches``: lists of ``diagram, curve, piece, attention, z, unstable``, with the weighted
        average opinion z; ``courses``: lists of ``panel, curve, piece, time, opinion``, a piece being an agent.
    """
    import numpy as np

    from dissensus import dynamics

    random = np.random.default_rng(config["seed"])
    agents = config["side"] ** 2
    start = random.uniform(-1.0, 1.0, agents) + 0.2
    inputs = random.uniform(0.0, 2.0 * config["input"], agents)
    common = {name: config[name] for name in ("damping", "self_reinforcement")} | {"normalize": True}
    graph = lattice(config["side"])
    found = {
        "pitchfork": dynamics.bifurcation(graph, **common),
        "unfolding": dynamics.bifurcation(graph, input=inputs, **common),
    }
    critical = found["pitchfork"].critical
    branches, courses = [], []
    for name, diagram in found.items():
        for number, branch in enumerate(diagram.branches):
            branches += _branch(name, number, branch)
    # Finer where the start decays, coarser where little happens.
    times = [0.0, *np.geomspace(0.1, config["time"], 24).tolist()]
    for panel, (attention, with_input) in PANELS.items():
        b = inputs if with_input else 0.0
        done = dynamics.simulate(graph, start, times=times, attention=attention * critical, input=b, **common)
        opinions = done.states.reshape(len(times), agents).tolist()
        courses += [
            [panel, "agents", agent, _short(t), _short(row[agent])]
            for agent in range(agents)
            for t, row in zip(times, opinions, strict=True)
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


def _branch(diagram: str, number: int, branch: "Branch") -> list[list[Any]]:
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

    def plan(self, request: Request) -> Plan:
        side = 4 if request.quick else 5
        common = {"damping": 1.0, "self_reinforcement": 1.0, "input": 0.1, "time": 60.0}
        return Plan([{"side": side, **common, "seed": seed} for seed in request.seeds or (1,)])

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
        "opinions: (a) below u*, (b) above u*, (c) at u*, (d) at u* with input."
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
            x_label="time",
            y_label="opinion",
        ),
    ),
)

"""Work measured in a process of its own, so that its peak of resident memory is its own."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


def measured(work: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What ``work`` of this module finds in each case; progress goes to standard error."""
    import torch

    task = {"work": work, "threads": torch.get_num_threads(), "cases": cases}
    command = [sys.executable, str(Path(__file__)), json.dumps(task)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


class Peak:
    """Megabytes of resident memory at the peak within the block, above those at its beginning."""

    def __enter__(self) -> "Peak":
        try:
            Path("/proc/self/clear_refs").write_text("5")  # Linux forgets the peak so far
            self.before = _status("VmRSS")
        except OSError:
            # Elsewhere the peak so far stands in for what is held, and a lower peak than that goes unseen.
            self.before = _highest()
        return self

    def __exit__(self, *exception: object) -> None:
        self.mb = max(0.0, _highest() - self.before)


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(key)) * 1024e-6


def _highest() -> float:
    if Path("/proc/self/status").exists():
        return _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1e-6 if sys.platform == "darwin" else 1024e-6)


def steps(nodes: int, edges: int, channels: int, steps: int, gradient: str) -> dict[str, Any]:
    """Euler steps of BIMP's field and back, with as few states kept as the gradient can do with."""
    import torch

    from common import opinion, random_graph
    from dissensus.solve import Adjoint, Autograd, Discrete, Euler, solve

    field, x = opinion(random_graph(nodes, edges), nodes, channels)
    # Once before: libraries, threads and the graph's transpose are not the steps' memory.
    field.vjp(0.0, x)[1](x, [torch.zeros_like(p) for p in field.parameters], None)
    with Peak() as peak:
        parts = {"discrete": Discrete(memory=0), "autograd": Autograd(), "adjoint": Adjoint()}
        solution = solve(field, x, 0.5 * steps, Euler(0.5), parts[gradient])
        solution.state.backward(torch.ones_like(x))
    return {"peak_mb": peak.mb}


def training(channels: int, duration: float, quick: bool) -> dict[str, Any]:
    """Two training steps of BIMP on a graph of arXiv's size; the first also builds the graph's index, which stays."""
    import torch
    from torch.nn import functional as F

    from common import say
    from dissensus import data, nn

    begun = time.perf_counter()
    graph = data.load("csbm").split(1) if quick else data.load("arxiv-synthetic").split(0)
    say(f"  {graph.num_nodes} nodes, {graph.num_edges // 2} edges: made in {time.perf_counter() - begun:.1f} s")
    torch.manual_seed(0)
    model = nn.BIMP(graph.num_features, channels, int(graph.y.max()) + 1, time=duration, option_attention="gram")
    optimizer = torch.optim.Adam(model.parameters())
    peaks = []

    def progress(t: float, state: torch.Tensor) -> None:
        say(f"  forward at t = {t:.2f} of {duration:g}")

    for number in (1, 2):
        begun = time.perf_counter()
        with Peak() as peak:
            optimizer.zero_grad()
            solution = model.integrate(graph.x, graph.edge_index, callback=progress)
            scores = model.decoder(model.read(solution.state))
            loss = F.cross_entropy(scores[graph.train_mask], graph.y[graph.train_mask])
            forward = time.perf_counter() - begun
            say(f"  step {number}: loss {loss.item():.4f}, forward in {forward:.1f} s, now backward")
            loss.backward()
            optimizer.step()
        seconds = time.perf_counter() - begun
        peaks.append(peak.mb)
        say(f"  step {number}: {seconds:.1f} s, {peak.mb:.0f} MB above the data")
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges // 2,
        "features": graph.num_features,
        "channels": channels,
        "time": duration,
        "peak_mb": max(peaks),
        "seconds": seconds,
        "forward_seconds": forward,
        "backward_seconds": seconds - forward,
        "evaluations": solution.stats.evaluations,
        "backward_evaluations": solution.stats.backward_evaluations,
        "loss": loss.item(),
    }


def fitting(dataset: str, flags: dict[str, Any]) -> dict[str, Any]:
    """A run of training, with its evaluations on the whole graph."""
    from common import say
    from dissensus import train

    config = train.resolve(dataset, "bimp", preset="none", flags=flags)
    config.data.load()  # which stays, for the run below

    def progress(epoch: train.Epoch) -> None:
        say(f"  epoch {epoch.number} of {config.train.epochs}: loss {epoch.loss:.4f}, validation {epoch.val:.2f}")

    with Peak() as peak:
        result = train.run(config, progress=progress)
    return {
        "peak_mb": peak.mb,
        "val": result.val,
        "test": result.test,
        "epoch": result.epoch,
        "seconds_per_epoch": result.seconds / len(result.history),
        "validation": [round(epoch.val, 2) for epoch in result.history],
    }


def _answer(work: Callable[..., Any], threads: int, case: dict[str, Any], end: Connection) -> None:
    import torch

    torch.set_num_threads(threads)
    end.send(work(**case))


def _each(work: str, threads: int, cases: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    import common  # noqa: F401 (torch and more, loaded once; there are no threads yet that a fork would lose)

    for case in cases:
        end, other = get_context("fork").Pipe(duplex=False)
        process = get_context("fork").Process(target=_answer, args=(globals()[work], threads, case, other))
        process.start()
        other.close()
        yield end.recv()
        process.join()


if __name__ == "__main__":
    print(json.dumps(list(_each(**json.loads(sys.argv[1])))))

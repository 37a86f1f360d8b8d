"""The benchmarks run, in their quick mode, and the plain models they compare with are the same models."""

import json
import sys
from pathlib import Path

import pytest
import torch

from dissensus import data, nn
from dissensus.cli import main
from dissensus.studies._bench import BENCHMARKS, Benchmarks

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from plain import plain

pytestmark = pytest.mark.slow

RUNTIME = ("bimp", "grand-l", "grand++-l", "graphcon-tran", "kuramoto")
KEYS = {
    "training": {"rows", "about", "note"},
    "runtime": {"rows", "plain_grand_over_our_bimp"},
    "floor": {"rows"},
    "scaling": {"time", "largest_over_smallest_cost", "memory_by_size", "memory_exponent", "memory_by_steps"},
    "arxiv": {"nodes", "edges", "seconds", "peak_mb", "evaluations", "loss"},
    "clusters": {"rows", "memory_ratio", "accuracy_difference"},
    "infinite": {"rows", "about", "note"},
    "opinions": {"ensemble", "large", "diagrams", "about", "note"},
}


def _bench(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    threads = str(torch.get_num_threads())
    assert main(["bench", "--quick", "--json", "--threads", threads, *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_help_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    assert ", ".join(BENCHMARKS) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("name", KEYS)
def test_quick_mode_measures_everything(name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = _bench(capsys, name, "-o", str(tmp_path / "out.json"))
    assert report == json.loads((tmp_path / "out.json").read_text())
    assert {"torch", "cpu", "threads", "date"} <= report["provenance"].keys()
    (result,) = report["results"]
    assert result["benchmark"] == name
    assert KEYS[name] <= result.keys()
    CHECKS[name](result)
    Benchmarks(report["results"], report["provenance"], quick=True).show()
    assert result["about"] in capsys.readouterr().out


def _clusters(result: dict) -> None:
    whole, pieces = result["rows"]
    assert [whole["step_on"], pieces["step_on"]] == ["whole graph", "clusters"]
    assert result["memory_ratio"] == pytest.approx(pieces["peak_mb"] / whole["peak_mb"])
    assert result["accuracy_difference"] == pytest.approx(pieces["test"] - whole["test"])
    # Four epochs on the whole graph are four steps, as is the first epoch on clusters.
    first, best = result["validation"][0]["clusters"], max(row["whole graph"] for row in result["validation"])
    assert [row["epoch"] for row in result["validation"]] == [1, 2, 3, 4]
    assert result["equal_steps_difference"] == pytest.approx(first - best)


def _opinions(result: dict) -> None:
    assert result["ensemble"]["largest_difference"] < 1e-3
    assert result["large"]["residual"] < 1e-8
    assert all(row["dense_seconds"] > 0 and row["iterative_seconds"] > 0 for row in result["diagrams"])


def _infinite(result: dict) -> None:
    depths = [row["depth"] for row in result["rows"]]
    assert depths == ["T = 12", "128 steps", "equilibrium, u = u*", "equilibrium, u = 0.9 u*"]
    assert all(0.0 <= row["test"] <= 100.0 and row["ms_per_epoch"] > 0.0 for row in result["rows"])
    assert [row["iterations"] is None for row in result["rows"]] == [True, True, False, False]
    assert all(row["residual"] <= 1e-5 for row in result["rows"][2:])


def _training(result: dict) -> None:
    assert [row["gradient"] for row in result["rows"]] == ["discrete", "discrete", "adjoint", "discrete"]
    for row in result["rows"]:
        assert row["speedup"] == pytest.approx(row["plain_ms"] / row["ours_ms"])
        assert row["loss_difference"] < 1e-3
        assert row["ours_evaluations"] > 0
        assert row["plain_evaluations"] > 0
    assert [row["paper_seconds"] for row in result["rows"]] == [14.33, 42.38, None, None]


def _runtime(result: dict) -> None:
    rows = result["rows"]
    assert tuple(row["model"] for row in rows) == RUNTIME * 2
    assert all(row["ours_ms"] > 0 and row["plain_ms"] > 0 and row["paper_seconds"] > 0 for row in rows)
    (first, _) = result["plain_grand_over_our_bimp"].values()
    assert first == pytest.approx(rows[1]["plain_ms"] / rows[0]["ours_ms"])


def _floor(result: dict) -> None:
    assert [row["size"] for row in result["rows"]] == ["cora", "computers", "arxiv"]
    for row in result["rows"]:
        assert row["ratio"] == pytest.approx(row["vjp_and_pullback_ms"] / row["kernels_ms"])
        assert row["fastest_ratio"] == pytest.approx(row["vjp_and_pullback_ms"] / row["fastest_kernels_ms"])
        saved = 0.0
        for key in ("sparse_product_ms", "sparse_transposed_ms"):
            saved += row[key] - min(row[kind + key] for kind in ("", "bags_", "own_"))
        assert row["kernels_ms"] - row["fastest_kernels_ms"] == pytest.approx(saved)
        assert row["chain_ratio"] == pytest.approx(row["vjp_and_pullback_ms"] / row["chain_ms"])
        assert row["forward_kernels_ms"] < row["kernels_ms"]
        assert row["solver_overhead"] == pytest.approx(1 - row["in_field_ms"] / row["integration_ms"])
        assert min(row["in_field_ms"], row["integration_ms"]) > 0


def _scaling(result: dict) -> None:
    assert [row["edges"] for row in result["time"]] == [10_000, 30_000]
    assert all(row["ns_per_edge_and_step"] > 0 for row in result["time"])
    small, large = (row["ns_per_edge_and_step"] for row in result["time"])
    assert result["largest_over_smallest_cost"] == max(small / large, large / small)
    assert [row["gradient"] for row in result["memory_by_steps"]] == ["discrete", "adjoint"]
    assert max(row["peak_mb"] for row in result["memory_by_size"]) > 0


def _arxiv(result: dict) -> None:
    assert result["seconds"] == pytest.approx(result["forward_seconds"] + result["backward_seconds"])
    assert result["backward_evaluations"] > 0
    assert result["loss"] > 0


CHECKS = {
    "clusters": _clusters,
    "infinite": _infinite,
    "opinions": _opinions,
    "training": _training,
    "runtime": _runtime,
    "floor": _floor,
    "scaling": _scaling,
    "arxiv": _arxiv,
}


def test_tables_show_every_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    threads = str(torch.get_num_threads())
    assert main(["bench", "floor", "--quick", "--threads", threads]) == 0
    shown = capsys.readouterr()
    for text in ("sparse product ms", "solver overhead", "computers", "threads, torch"):
        assert text in shown.out
    assert "floor" in shown.err


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["speed"], "training"),
        (["floor", "--threads", "-1"], "at least 1"),
        (["floor", "-o", "no/x"], "create it first"),
    ],
)
def test_refuses_before_any_work(arguments: list[str], cure: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 1
    error = capsys.readouterr().err
    assert cure in error
    assert "..." not in error


CASES = [
    *((name, {}) for name in RUNTIME),
    ("bimp", {"option_attention": "node", "num_nodes": 60, "own_score": 0.0, "self_reinforcement": 1.5}),
    ("bimp", {"gradient": "adjoint"}),
    ("grand-l", {"source": True, "learn_time_scale": True, "attention": "exp_kernel", "normalizer": "squareplus"}),
    ("grand++-l", {"learn_time_scale": True, "normalizer": "squareplus"}),
]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_plain_models_are_the_same_models(name: str, options: dict) -> None:
    graph = data.csbm(nodes=60, classes=3, features=8, degree=4, seed=1).split(1)
    torch.manual_seed(0)
    model = nn.create(
        name, in_channels=8, hidden_channels=6, out_channels=3, time=3.0, rtol=1e-9, atol=1e-9, dropout=0.0,
        input_dropout=0.0, **options,
    ).double()  # fmt: skip
    if name == "grand-l" and options:
        torch.nn.init.constant_(model.source, 0.7)
    if name == "grand++-l":
        model.set_sources(graph.train_mask)
    other = plain(model)
    x = graph.x.double()
    ours, theirs = model(x, graph.edge_index), other(x, graph.edge_index)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-7)
    weights = torch.linspace(-1.0, 1.0, ours.numel(), dtype=torch.float64).view_as(ours)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    gradients = {key: p.grad for key, p in model.named_parameters()}
    found = {key.replace(".linear", ""): grad for key, grad in gradients.items()}
    compared = {key: p.grad for key, p in other.named_parameters()}
    assert found.keys() == compared.keys()
    for key, gradient in compared.items():
        torch.testing.assert_close(found[key], gradient, rtol=1e-5, atol=1e-6)


def test_the_page_shows_the_committed_training_times() -> None:
    root = Path(__file__).parents[2]
    page = (root / "benchmarks" / "README.md").read_text(encoding="utf-8")
    shown = page.split("bench:training -->\n")[1].splitlines()[2:-1]
    rows = json.loads((root / "benchmarks/results/training.json").read_text())["results"][0]["rows"]
    for line, row in zip(shown, rows, strict=True):
        graph, gradient, epochs, ours, plain_time, ratio, paper = (cell.strip() for cell in line.split("|")[1:-1])
        assert (graph, gradient) == (row["graph"], row["gradient"])
        assert int(epochs) == pytest.approx(1e3 * row["ours_seconds"] / row["ours_ms"])
        assert ours == f"{row['ours_seconds']:#.3g} s".replace(". ", " ")
        assert plain_time == f"{row['plain_seconds']:.0f} s"
        assert ratio == f"{row['speedup']:.1f}"
        assert paper == ("" if row["paper_seconds"] is None else f"{row['paper_seconds']:.1f} s")

"""Training of BIMP with the paper's settings against plain PyG + torchdiffeq, evaluation in every epoch included."""

from typing import Any

from common import say
from dissensus.studies import STUDIES
from epochs import alone, create, evaluations, graph, race

# dataset, gradient (the paper's for Computers is the continuous adjoint), epochs, plain epochs, epochs without dropout
_CASES = (
    ("cora", "discrete", 100, 20, 20),
    ("citeseer", "discrete", 60, 20, 20),
    ("computers", "adjoint", 5, 3, 3),
    ("computers", "discrete", 5, 3, 3),
)


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds an epoch of both (medians) with the paper's dropout; losses and accuracies without."""
    return {
        "benchmark": "training",
        "about": "BIMP, the paper's settings; an epoch is forward, backward, step and an evaluation",
        "rows": [_case(name, gradient, *((1, 1, 2) if quick else epochs), quick) for name, gradient, *epochs in _CASES],
        "note": "Ours and plain are trained in the same plain PyTorch loop (dense data.x, loss.backward()); "
        "ours_in_our_loop_ms adds the process settings of train.fit. Seconds alone are those of a whole training, "
        "before the race begins; seconds in the race the median epoch times the paper's epochs (Cora, Computers 100, "
        "Citeseer 250), however many were run; the paper's own are an Nvidia A6000's. The losses are those after the "
        "epochs without dropout, both from the same parameters.",
    }


def _case(name: str, gradient: str, epochs: int, plain_epochs: int, exact: int, quick: bool) -> dict[str, Any]:
    data, title = graph(name, quick=quick, real=name != "computers")
    say(f"  {title}, {gradient} gradient: {epochs} epochs, {plain_epochs} of the plain version")
    model, settings = create(name, "bimp", data, gradient=gradient)
    by_itself = alone(model, data, settings, settings.epochs) if settings.epochs == epochs else None
    model, settings = create(name, "bimp", data, gradient=gradient)
    own_loop = alone(model, data, settings, epochs, package_settings=True)
    model, settings = create(name, "bimp", data, gradient=gradient)
    ours, plain = race(model, data, settings, epochs, plain_epochs)
    # On the tiny graphs of quick mode, steps of their own move both by more than the losses may differ.
    tight = {"rtol": 1e-4, "atol": 1e-4} if quick else {}
    model, settings = create(name, "bimp", data, gradient=gradient, dropout=0.0, input_dropout=0.0, **tight)
    exact_ours, exact_plain = race(model, data, settings, exact, exact)
    total = settings.epochs
    return {
        "graph": title,
        "gradient": gradient,
        "ours_ms": ours.ms(),
        "plain_ms": plain.ms(),
        "speedup": plain.ms() / ours.ms(),
        "ours_in_our_loop_ms": own_loop.ms(),
        "ours_seconds_alone": None if by_itself is None else sum(by_itself.seconds),
        "ours_seconds": 1e-3 * ours.ms() * total,
        "plain_seconds": 1e-3 * plain.ms() * total,
        "paper_seconds": STUDIES["runtime"].printed.get({"model": "bimp", "dataset": name}),
        "ours_epochs": epochs,
        "plain_epochs": plain_epochs,
        "ours_evaluations": evaluations(ours),
        "plain_evaluations": evaluations(plain),
        "ours_test": ours.test,
        "plain_test": plain.test,
        "epochs_without_dropout": exact,
        "ours_loss": exact_ours.losses[-1],
        "plain_loss": exact_plain.losses[-1],
        "loss_difference": abs(exact_ours.losses[-1] - exact_plain.losses[-1]),
        "ours_test_without_dropout": exact_ours.test,
        "plain_test_without_dropout": exact_plain.test,
    }

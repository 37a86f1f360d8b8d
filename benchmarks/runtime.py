"""An epoch of the five continuous models of the paper's table of running times, each beside its plain version."""

from typing import Any

from common import say
from dissensus.studies import STUDIES
from epochs import create, evaluations, graph, race

MODELS = ("bimp", "grand-l", "grand++-l", "graphcon-tran", "kuramoto")
_EPOCHS = {"cora": 10, "citeseer": 5}


def run(quick: bool = False) -> dict[str, Any]:
    """Milliseconds an epoch (medians) with the settings of the preset ``paper``, and their ratios."""
    rows = []
    for dataset, epochs in _EPOCHS.items():
        data, title = graph(dataset, quick=quick)
        for name in MODELS:
            say(f"  {name} on {title}")
            model, settings = create(dataset, name, data)
            ours, plain = race(model, data, settings, 2 * epochs if not quick else 2, epochs if not quick else 1)
            rows.append(
                {
                    "graph": title,
                    "model": name,
                    "ours_ms": ours.ms(),
                    "plain_ms": plain.ms(),
                    "speedup": plain.ms() / ours.ms(),
                    "ours_evaluations": evaluations(ours),
                    "plain_evaluations": evaluations(plain),
                    "ours_seconds": 1e-3 * ours.ms() * settings.epochs,
                    "paper_seconds": STUDIES["runtime"].printed.get({"model": name, "dataset": dataset}),
                }
            )
    times = {(row["graph"], row["model"]): row for row in rows}
    return {
        "benchmark": "runtime",
        "about": "five continuous models, the preset paper; an epoch is forward, backward, step and an evaluation",
        "rows": rows,
        "plain_grand_over_our_bimp": {
            title: times[title, "grand-l"]["plain_ms"] / times[title, "bimp"]["ours_ms"]
            for title in dict.fromkeys(row["graph"] for row in rows)
        },
        "note": "Seconds are the median times the paper's epochs (100 on Cora, 250 on Citeseer), the paper's on an "
        "Nvidia A6000.",
    }

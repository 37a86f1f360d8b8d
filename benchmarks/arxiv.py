"""A full-batch training step of BIMP on a generated graph of ogbn-arxiv's size."""

from typing import Any

from memory import measured


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds of a training step, and its peak memory above the data."""
    channels = 16 if quick else 128
    (found,) = measured("training", [{"channels": channels, "duration": 4.0, "quick": quick}])
    return {
        "benchmark": "arxiv",
        "about": f"a full-batch training step of BIMP: {channels} channels, T = 4, dopri5, option attention gram",
        **found,
        "note": "Of two steps, the higher peak of the process above what it holds before the step, and the time of the "
        "second. Edges are undirected.",
    }

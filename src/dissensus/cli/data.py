"""List the datasets: sizes, homophily, licence, and whether each is present on this machine.

Edges between two nodes count once where a graph is undirected; arrows count each where it is directed. Homophily is the
share of edges that join nodes of one class. Raw files are looked for below the folder that DISSENSUS_DATA names, which
is never written to; processed ones are kept in DISSENSUS_CACHE, or the user's cache directory.
"""

import argparse
import json
from dataclasses import asdict

from dissensus.data._catalogue import CATALOGUE, cache_folder, data_folder, present


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the catalogue; needs neither torch nor the datasets."""
    if args.json:
        print(json.dumps(_facts(), indent=2))
    else:
        _print_table()
    return 0


def _facts() -> dict[str, object]:
    folder = data_folder()
    return {
        "datasets": [{**asdict(entry), "present": present(entry)} for entry in CATALOGUE.values()],
        "data_folder": str(folder) if folder else None,
        "cache_folder": str(cache_folder()),
    }


def _print_table() -> None:
    rows = [("name", "nodes", "edges", "features", "classes", "homophily", "licence", "present")]
    for entry in CATALOGUE.values():
        homophily = "unknown" if entry.homophily is None else f"{entry.homophily:.3f}"
        sizes = (
            f"{entry.nodes:,}",
            f"{entry.edges:,}{'*' * entry.directed}",
            f"{entry.features:,}",
            f"{entry.classes}",
        )
        rows.append((entry.name, *sizes, homophily, entry.licence, present(entry)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(w) if i in (0, 6, 7) else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
    print("\n* directed edges; csbm: sizes are its defaults; arxiv-synthetic: generated, not arXiv's papers")
    print(f"raw files: {data_folder() or 'DISSENSUS_DATA is not set'}\nprocessed files: {cache_folder()}")

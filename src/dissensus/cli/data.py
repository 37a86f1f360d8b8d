"""List the datasets: sizes, homophily, licence, and whether each is present on this machine.

In an undirected graph, each edge is counted once. Homophily is the share of edges that connect nodes of the same class.

Raw files are read from the folder that DISSENSUS_DATA names, which is never written to. Processed files are kept in
DISSENSUS_CACHE, or in the user's cache directory.
"""

import argparse
from dataclasses import asdict

from dissensus.cli._common import print_json


def run(args: argparse.Namespace) -> int:
    from dissensus import data
    from dissensus.report import Table

    found = [data.info(name) for name in data.names()]
    raw, processed = data.folders()
    if args.json:
        listed = [{**asdict(info), "present": info.present} for info in found]
        print_json({"datasets": listed, "data_folder": raw and str(raw), "cache_folder": str(processed)})
        return 0
    rows = []
    for info in found:
        sizes = [f"{size:,}" for size in (info.nodes, info.edges, info.features, info.classes)]
        sizes[1] += "*" * info.directed
        homophily = "unknown" if info.homophily is None else f"{info.homophily:.3f}"
        rows.append([info.name, *sizes, homophily, info.licence, info.present])
    Table(["name", "nodes", "edges", "features", "classes", "homophily", "licence", "present"], rows).show()
    print("\n* directed edges; csbm: default sizes; arxiv-synthetic: generated, not the real papers of arXiv")
    print(f"raw files: {raw or 'DISSENSUS_DATA is not set'}\nprocessed files: {processed}")
    return 0

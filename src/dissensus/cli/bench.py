"""Measure speed, as ratios in one run, against plain PyG + torchdiffeq implementations; needs a source checkout."""

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# benchmark -> (module in benchmarks/, what it measures)
BENCHMARKS = {
    "training": ("training", "one training epoch of BIMP on Cora, the paper's settings"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    listed = "; ".join(f"{name}: {text}" for name, (_, text) in BENCHMARKS.items())
    parser.add_argument(
        "benchmark", nargs="*", metavar="BENCHMARK", help=f"which ones, all if none is named ({listed})"
    )
    parser.add_argument("--threads", type=int, default=0, help="threads of torch; 0 leaves them as they are")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the JSON to this file too")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    from dissensus.errors import InputError, one_of

    chosen = [one_of("benchmark", name, BENCHMARKS) for name in args.benchmark] or list(BENCHMARKS)
    folder = Path(__file__).parents[3] / "benchmarks"
    if not folder.is_dir():
        raise InputError("the benchmarks are not part of the installed package: run this in a checkout of the source")
    sys.path.insert(0, str(folder))

    import torch

    from dissensus.report import provenance

    if args.threads:
        torch.set_num_threads(args.threads)
    results: list[dict[str, Any]] = []
    for name in chosen:
        print(f"{name}: {BENCHMARKS[name][1]} ...", file=sys.stderr, flush=True)
        results.append(import_module(BENCHMARKS[name][0]).run())
    report = {"provenance": {**provenance(), "threads": str(torch.get_num_threads())}, "results": results}
    if args.output:
        Path(args.output).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if args.json:
        print(json.dumps(report))
    else:
        _show(results)
    return 0


def _show(results: list[dict[str, Any]]) -> None:
    from dissensus.report import Table

    for result in results:
        rows = [[key, value if isinstance(value, int | float) else str(value)] for key, value in result.items()]
        Table(["measured", "value"], rows[1:], caption=result["benchmark"], digits=5).show()

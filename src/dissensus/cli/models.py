"""List the models: name, equation, source, and the paper's tables each appears in."""

import argparse
import json
from dataclasses import asdict

from dissensus.catalogue import MODELS


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the catalogue; needs no torch."""
    if args.json:
        print(json.dumps({name: asdict(info) for name, info in MODELS.items()}))
        return 0
    width = max(map(len, MODELS))
    for info in MODELS.values():
        print(f"{info.name:<{width}}  {info.equation}")
        print(f"{'':<{width}}  {info.source}")
        print(f"{'':<{width}}  tables: {info.tables}\n" if info.tables else "")
    return 0

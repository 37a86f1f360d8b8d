"""List the models: name, equation, source, and the paper's tables each appears in."""

import argparse

from dissensus.cli._common import print_json

_SHOWN = ("name", "equation", "source", "tables", "options", "depth", "continuous")


def run(args: argparse.Namespace) -> int:
    from dissensus import nn

    infos = [nn.info(name) for name in nn.names()]
    if args.json:
        print_json({info.name: {key: getattr(info, key) for key in _SHOWN} for info in infos})
        return 0
    width = max(len(info.name) for info in infos)
    for info in infos:
        print(f"{info.name:<{width}}  {info.equation}")
        print(f"{'':<{width}}  {info.source}")
        print(f"{'':<{width}}  tables: {info.tables}\n" if info.tables else "")
    return 0

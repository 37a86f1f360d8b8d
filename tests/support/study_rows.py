"""Records of runs that never ran, and their rows."""

from dissensus import runs
from dissensus.runs import Record


def record(config, target="t", test=80.0, seconds=2.0, status="done"):
    result = {"val": test, "test": test, "epoch": 3, "epochs": 9, "seconds": seconds} if status == "done" else None
    error = None if status == "done" else "it broke"
    return Record(runs.key(config), target, status, config, result, error, None, seconds, "", "now", {})


def rows_of(study, configs, **options):
    return [row for config in configs for row in study.rows(record(config, **options))]

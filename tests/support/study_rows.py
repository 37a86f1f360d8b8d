"""Records of runs that never ran, and their rows."""

from dissensus import runs
from dissensus.runs import Record
from dissensus.studies import STUDIES
from dissensus.studies._study import Request


def record(config, target="t", test=80.0, seconds=2.0, status="done"):
    result = {"val": test, "test": test, "epoch": 3, "epochs": 9, "seconds": seconds} if status == "done" else None
    error = None if status == "done" else "it broke"
    return Record(runs.key(config), target, status, config, result, error, None, seconds, "", "now", {})


def rows_of(study, configs, **options):
    return [row for config in configs for row in study.rows(record(config, **options))]


def planned_rows(name, **request):
    study = STUDIES[name]
    return [row for config in study.plan(Request(**request)).configs for row in study.rows(finished(study, config))]


def finished(study, config, **result):
    result = {"val": 70.0, "test": 70.0, "epoch": 1, "epochs": 2, "seconds": 1.0, "memory": 5.0, **result}
    return Record(runs.key(config), study.target, "done", config, result, None, None, 1.0, "", "now", {})

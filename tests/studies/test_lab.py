import json
import re
from pathlib import Path

import pytest

from dissensus import runs
from dissensus.cli import main


def test_a_store_gives_results_beside_the_paper(tmp_path):
    configs = runs.grid({"data": {"name": "cora"}, "model": {"name": "bimp"}}, {"data.split": [1, 2, 3]})
    results = [
        {"dataset": "cora", "model": "bimp", "test": 82.0, "options": {"time": 16.0, "step_size": 0.5}},
        {"energy": [1.0, 0.5]},
        None,
    ]
    with runs.Store(tmp_path / "runs.db") as store:
        for config, result in zip(configs, results, strict=True):
            status = "failed" if result is None else "done"
            when = "2026-01-01T00:00:00"
            store.put(runs.Record(runs.key(config), "a:b", status, config, result, None, None, 1.0, when, when, {}))
    assert main(["lab", "--store", str(tmp_path / "runs.db"), "-o", str(tmp_path / "lab.html"), "--no-open"]) == 0
    table = (tmp_path / "lab.html").read_text(encoding="utf-8").split('id="accuracy"')[1].split("</figure>")[0]
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<t[dh] ?[^>]*>.*?</t[dh]>", table.split("<tbody>")[1])]
    assert cells == ["cora", "bimp", "accuracy", "82.00 (1)", "83.19", "−1.19", "1", "1"]


@pytest.mark.slow
def test_runs_of_a_store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = ["train", "karate", "--model", "gcn", "--splits", "1-2", "--set", "train.epochs=2", "--store", "runs.db"]
    assert main([*train, "--json"]) == 0
    assert main(["lab", "--store", "runs.db", "--no-open"]) == 0
    document = Path("lab.html").read_text(encoding="utf-8")
    found = document.split('id="stored-runs">')[1].split("</script>")[0]
    first, second = json.loads(found)
    assert (first["settings"]["data.split"], second["settings"]["data.split"]) == ("1", "2")
    assert {name: len(values) for name, values in first["history"].items()} == {"validation": 2, "loss": 2}

"""The demonstration shows what it says: where features are few depth is needed, and there BIMP gains from it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dissensus.cli import main
from dissensus.errors import InputError
from dissensus.studies import _demo, demo

pytestmark = pytest.mark.slow


def test_depth_pays_where_features_are_few_and_a_deep_gcn_collapses():
    found = demo(depths=(2, 32), splits=(1,), epochs=25)
    (full, few) = _demo.TASKS

    def one(task, model, depth=None):
        (outcome,) = found.of(task, model, depth)
        return outcome

    assert one(full, "gcn", 2).accuracy > 90
    assert one(full, "gcn", 32).accuracy < 50
    assert one(full, "bimp", 32).accuracy > 85
    assert one(few, "bimp", 32).accuracy > one(few, "gcn", 2).accuracy
    assert one(few, "bimp", 32).accuracy > one(few, "bimp", 2).accuracy + 5
    # Label propagation sees no features, so that it does not matter where they are known.
    assert one(full, "label-propagation").accuracy == one(few, "label-propagation").accuracy > 90
    gcn, bimp = one(few, "gcn", 32), one(few, "bimp", 32)
    assert gcn.ranks[-1] < 2 < 8 < bimp.ranks[-1]
    assert bimp.layers == (1, 2, 4, 8, 16, 32)
    assert len(found.table().rows) == 4


def test_command_prints_a_table_and_writes_a_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_demo.demo, "__kwdefaults__", {**_demo.demo.__kwdefaults__, "depths": (2, 3), "splits": (1,)})
    page = tmp_path / "demo.html"
    assert main(["demo", "--epochs", "2", "-o", str(page)]) == 0
    printed = capsys.readouterr()
    assert "label propagation" in printed.out
    assert "Depth is needed where" in " ".join(printed.out.split())
    assert "gcn depth 2" in printed.err
    html = page.read_text()
    assert "Dirichlet energy" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert main(["demo", "--epochs", "1", "-o", str(page), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["outcomes"]) == 10


def test_no_epochs_is_refused(capsys):
    assert main(["demo", "--epochs", "0"]) == 1
    assert "at least 1" in capsys.readouterr().err
    with pytest.raises(InputError, match="at least one each"):
        demo(splits=())


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT as on POSIX")
def test_interrupt_ends_cleanly(tmp_path):
    command = [sys.executable, "-m", "dissensus", "demo", "-o", str(tmp_path / "demo.html")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert process.stderr is not None
    process.stderr.readline()  # the first model is done
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Traceback" not in rest
    assert "interrupted" in rest

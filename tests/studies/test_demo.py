"""The demonstration shows what it says: at depth the GCN collapses and BIMP does not."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dissensus.cli import main
from dissensus.studies import demo


def test_gcn_collapses_with_depth_and_bimp_does_not():
    outcomes = {(o.model, o.depth): o for o in demo.run(depths=(2, 32), epochs=25)}
    gcn, bimp = outcomes["gcn", 32], outcomes["bimp", 32]
    assert outcomes["gcn", 2].accuracy > 85
    assert gcn.accuracy < 50
    assert bimp.accuracy > 85
    assert gcn.rank < 2 < 8 < bimp.rank
    assert gcn.energy < 1e-2 * outcomes["gcn", 2].energy
    assert bimp.energy > 0.1 * outcomes["bimp", 2].energy
    assert bimp.layers == (1, 2, 4, 8, 16, 32)


def test_command_prints_a_table_and_writes_a_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "DEPTHS", (2, 3))
    monkeypatch.setattr(demo.run, "__kwdefaults__", {**demo.run.__kwdefaults__, "depths": (2, 3)})
    page = tmp_path / "demo.html"
    assert main(["demo", "--epochs", "2", "-o", str(page)]) == 0
    printed = capsys.readouterr()
    assert "BIMP accuracy" in printed.out
    assert "GCN  depth   2" in printed.err
    html = page.read_text()
    assert "Dirichlet energy" in html
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert main(["demo", "--epochs", "1", "-o", str(page), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["outcomes"]) == 4


def test_no_epochs_is_refused(capsys):
    assert main(["demo", "--epochs", "0"]) == 1
    assert "at least 1" in capsys.readouterr().err


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

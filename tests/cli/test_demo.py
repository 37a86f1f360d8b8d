import json
import os
import signal
import subprocess
import sys
import time

import pytest

from dissensus.cli import main
from dissensus.studies import _demo


@pytest.mark.slow
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


@pytest.mark.slow
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

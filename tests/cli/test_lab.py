import json
from pathlib import Path

from dissensus.cli import main


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert main(["lab"]) == 0
    assert opened == [(tmp_path / "lab.html").as_uri()]
    assert main(["lab", "-o", "sub/x.html", "--no-open", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {"page": "sub/x.html", "opened": False}
    document = Path("sub/x.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in document
    assert len(document) < 1_000_000
    assert main(["lab", "--store", "none.db"]) == 1
    assert "there is no store of runs here" in capsys.readouterr().err
    assert main(["lab", "-o", "sub"]) == 1
    assert "give the name of a file" in capsys.readouterr().err

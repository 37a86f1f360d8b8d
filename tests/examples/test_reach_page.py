"""The code on the page about exporting and sharing runs as it stands."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "reach.md"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("onnxscript", "onnxruntime", "huggingface_hub"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    found: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), found)
    assert {path.name for path in tmp_path.iterdir()} >= {"bimp.pt2", "bimp.onnx", "bimp-karate"}
    model, again, graph = found["model"], found["again"], found["graph"]
    assert str(again).removeprefix("Shared") == str(model)
    expected = model(graph.x, graph.edge_index).detach().numpy()
    assert abs(found["scores"] - expected).max() < 1e-5
    assert abs(again(graph.x, graph.edge_index).detach().numpy() - expected).max() < 1e-6

"""Models with the mixin of huggingface_hub: saved to a folder and loaded again, without a network."""

from pathlib import Path
from typing import Any

import pytest
import torch

from dissensus import nn

hub: Any = pytest.importorskip("huggingface_hub")


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize(
    ("cls", "options"),
    [(nn.BIMP, {"heads": 2, "time": 2.0}), (nn.GRAND, {"source": True, "time": 2.0}), (nn.GCN, {"num_layers": 3})],
)
def test_a_model_comes_back_from_a_folder(cls: type[nn.Model], options: dict[str, Any], tmp_path: Path) -> None:
    Shared = type("Shared", (cls, hub.PyTorchModelHubMixin), {})
    torch.manual_seed(0)
    model = Shared(6, 8, out_channels=3, **options).eval()
    model.save_pretrained(tmp_path)
    assert {"config.json", "model.safetensors"} <= {path.name for path in tmp_path.iterdir()}
    loaded = Shared.from_pretrained(tmp_path)
    assert loaded.config == model.config
    assert not loaded.training
    x, edge_index = torch.rand(5, 6), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    torch.testing.assert_close(loaded(x, edge_index), model(x, edge_index), rtol=0, atol=0)


def test_a_model_without_the_mixin_is_made_as_before() -> None:
    assert nn.BIMP(6, 8, 3).config["in_channels"] == 6

import runpy
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="lightning is not installed: pip install -e '.[dev]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "lightning_bimp.py"


# Lightning asks for worker processes, and passes on what torch deprecates.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_bimp_trains_through_lightning() -> None:
    train = runpy.run_path(str(EXAMPLE))["train"]
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    assert train(epochs=8, **quiet) > 0.7

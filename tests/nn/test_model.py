import copy
import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch_geometric.data import Data

from dissensus import nn
from dissensus.errors import InputError
from dissensus.nn import BIMP, GCN, Model

EDGES = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]])
X = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))


def make(**options: Any) -> BIMP:
    torch.manual_seed(0)
    return BIMP(6, 4, 3, heads=2, attention_channels=4, **options)


def test_configuration_is_recorded_with_defaults_and_is_plain() -> None:
    model = make(damping=np.float32(0.5))
    assert model.config["in_channels"] == 6
    assert model.config["damping"] == 0.5
    assert model.config["method"] == "dopri5"
    assert json.loads(json.dumps(model.config)) == model.config
    assert repr(BIMP(**model.config)) == repr(model)


def test_numpy_numbers_are_taken() -> None:
    model = BIMP(np.int64(6), np.int32(4), np.int64(3), heads=np.int64(2), attention_channels=4)
    assert {type(model.config[key]) for key in ("in_channels", "hidden_channels", "heads")} == {int}
    assert model(X, EDGES).shape == (5, 3)


def test_repr_shows_sizes_and_what_is_not_default() -> None:
    assert repr(BIMP(6, 4, 3)) == "BIMP(6, 4, 3)"
    assert repr(make(damping=0.5, method="euler")) == (
        "BIMP(6, 4, 3, heads=2, attention_channels=4, damping=0.5, method='euler')"
    )
    assert repr(GCN(6, 4, 3, num_layers=3)) == "GCN(6, 4, 3, num_layers=3)"


@pytest.mark.parametrize("model", [make(), make(encoder="mlp", attention="exp_kernel"), GCN(6, 4, 3)])
def test_reset_parameters_draws_anew_and_repeatably(model: Model) -> None:
    draws = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        model.reset_parameters()
        draws.append([p.detach().clone() for p in model.parameters()])
    matrices = [i for i, p in enumerate(draws[0]) if p.dim() == 2]
    assert all(not torch.equal(draws[0][i], draws[1][i]) for i in matrices)
    assert all(torch.equal(a, b) for a, b in zip(draws[0], draws[2], strict=True))


def test_reset_parameters_keeps_each_part_its_own_initialisation() -> None:
    model = make(own_score=5.0, attention="exp_kernel")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(100.0)
    model.reset_parameters()
    # Small attention weights, not those of a plain linear layer.
    assert model.communication.key.weight.abs().max() < 0.1
    assert model.communication.key.bias.abs().max() <= 1.0
    assert torch.equal(model.communication.length, torch.ones(2))
    assert model.options.own_score == 5.0
    assert model.encoder.linear.weight.abs().max() < 1.0


def test_reset_model_is_as_good_as_new() -> None:
    model = make()
    fresh = [p.std().item() for p in make().parameters() if p.dim() == 2]
    model.reset_parameters()
    again = [p.std().item() for p in model.parameters() if p.dim() == 2]
    assert again == pytest.approx(fresh, rel=0.7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_saved_and_loaded(tmp_path: Path, dtype: torch.dtype) -> None:
    path = tmp_path / "model.safetensors"
    model = make(damping=0.7, option_attention="node", num_nodes=5, attention="exp_kernel").to(dtype)
    model.save(path)
    x = X.to(dtype)
    for loaded in (BIMP.load(path), BIMP.load(str(path)), nn.load(path)):
        assert type(loaded) is BIMP
        assert loaded.config == model.config
        assert not loaded.training
        assert torch.equal(loaded(x, EDGES), model.eval()(x, EDGES))


def test_every_model_is_saved_and_loaded(tmp_path: Path) -> None:
    for name in nn.names():
        if not issubclass(nn.info(name).cls, nn.Model):  # a user's module that another test has registered
            continue
        torch.manual_seed(0)
        model = nn.create(name, in_channels=6, hidden_channels=8, out_channels=3).eval()
        model.save(tmp_path / "model")
        loaded = nn.load(tmp_path / "model")
        assert type(loaded) is type(model), name
        assert loaded.config == model.config, name
        for a, b in zip(model.state_dict().values(), loaded.state_dict().values(), strict=True):
            assert torch.equal(a, b), name


def test_no_pickle_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        pytest.fail("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "save", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    path = tmp_path / "model"
    make().save(path)
    BIMP.load(path)
    header = int.from_bytes(path.read_bytes()[:8], "little")
    described = json.loads(path.read_bytes()[8 : 8 + header])
    assert described["__metadata__"]["class"] == "BIMP"


def test_state_dict_goes_from_model_to_model() -> None:
    model, other = make(), BIMP(6, 4, 3, heads=2, attention_channels=4)
    other.load_state_dict(model.state_dict())
    assert torch.equal(other.eval()(X, EDGES), model.eval()(X, EDGES))


def test_loading_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(InputError, match=r"no file .*model\.save"):
        BIMP.load(path)
    with pytest.raises(InputError, match="no file"):
        BIMP.load(tmp_path)
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match="not a safetensors file"):
        BIMP.load(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match="not a safetensors file"):
        nn.load(path)
    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(InputError, match="holds no dissensus model"):
        BIMP.load(path)


def test_loading_a_damaged_model(tmp_path: Path) -> None:
    path = tmp_path / "model"
    make().save(path)
    whole = path.read_bytes()
    for cut in (4, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="not a safetensors file"):
            BIMP.load(path)


@pytest.mark.parametrize(
    ("config", "tensors"),
    [
        ("{", None),
        ("[]", None),
        (json.dumps({"in_channels": 6}), None),
        (json.dumps({**make().config, "flavour": 3}), None),
        (json.dumps({**make().config, "hidden_channels": 8}), None),
        (json.dumps({**make().config, "damping": -1.0}), None),
        (json.dumps(make().config), {"weight": torch.ones(2)}),
    ],
)
def test_loading_a_file_that_does_not_fit(tmp_path: Path, config: str, tensors: dict[str, torch.Tensor] | None) -> None:
    path = tmp_path / "model"
    save_file(tensors or dict(make().state_dict()), path, metadata={"class": "BIMP", "config": config})
    with pytest.raises(InputError, match="does not fit a BIMP"):
        BIMP.load(path)


def test_loading_another_class(tmp_path: Path) -> None:
    path = tmp_path / "model"
    GCN(6, 4, 3).save(path)
    with pytest.raises(InputError, match=r"holds a GCN, not a BIMP: load it with nn\.load"):
        BIMP.load(path)
    save_file({}, path, metadata={"class": "Future", "config": "{}"})
    with pytest.raises(InputError, match="Future, which is not registered"):
        nn.load(path)


def test_saving_where_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder"):
        make().save(tmp_path / "missing" / "model")


def test_a_class_of_ones_own(tmp_path: Path) -> None:
    class Shallow(BIMP):
        """BIMP that stops early."""

        def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, *, depth: float = 1.0) -> None:
            super().__init__(in_channels, hidden_channels, out_channels, time=depth)

    model = Shallow(6, 4, 3, depth=0.5)
    assert model.config == {"in_channels": 6, "hidden_channels": 4, "out_channels": 3, "depth": 0.5}
    assert repr(model) == "Shallow(6, 4, 3, depth=0.5)"
    model.save(tmp_path / "model")
    loaded = Shallow.load(tmp_path / "model")
    assert loaded.time == 0.5


def test_capabilities() -> None:
    assert (BIMP(6, 4, 3).has_solver_time, GCN(6, 4, 3).has_solver_time) == (True, False)
    assert not BIMP(6, 4, 3, depth="equilibrium").has_solver_time
    assert (BIMP(6, 4, 3).continuous, GCN(6, 4, 3).continuous) == (True, False)
    assert (make(option_attention="node", num_nodes=5).bound_nodes, make(num_nodes=5).bound_nodes) == (5, None)
    split = Data(train_mask=torch.tensor([True, False, True, False, False]))
    model = nn.GRANDPlusPlus(6, 4, 3)
    assert model.bound_nodes is None
    model.prepare(split)
    assert torch.equal(model.sources, split.train_mask)
    assert model.bound_nodes == 5
    model.prepare(Data(train_mask=torch.zeros(5, dtype=torch.bool)))  # a batch without training nodes
    assert model.bound_nodes is None
    for other in (make(), GCN(6, 4, 3)):
        before = {key: value.clone() for key, value in other.state_dict().items()}
        other.prepare(split)
        assert all(torch.equal(value, before[key]) for key, value in other.state_dict().items())


def test_configuration_survives_copies() -> None:
    model = make(damping=0.5)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert twin.config == model.config
        assert repr(twin) == repr(model)


def test_open_keywords_are_recorded() -> None:
    class Open(GCN):
        """GCN whose own keywords stand before those that it passes on."""

        def __init__(self, in_channels: int, hidden_channels: int, out_channels: int, *, own: int = 1, **options: Any):
            super().__init__(in_channels, hidden_channels, out_channels, **options)

    config = Open(6, 4, 3, dropout=0.1).config
    assert (config["own"], config["dropout"], config["num_layers"]) == (1, 0.1, 2)
    with pytest.raises(TypeError, match="dropuot"):
        Open(6, 4, 3, dropuot=0.1)


def test_models_without_graphs_say_so() -> None:
    assert GCN(6, 4, 3).graphs(X, EDGES) is None


class Passing(BIMP):
    """Passes every argument on, as subclasses often do."""

    def __init__(self, *args: Any, unit: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.unit = unit


def test_a_subclass_may_pass_all_arguments_on() -> None:
    model = Passing(3, 4, 2, time=2.0, unit=True)
    assert model.config == BIMP(3, 4, 2, time=2.0).config | {"unit": True}
    ours, theirs = inspect.signature(Passing).parameters, inspect.signature(BIMP).parameters
    assert list(ours)[:3] == list(theirs)[:3]
    assert set(ours) == {*theirs, "unit"}
    assert repr(model) == "Passing(3, 4, 2, unit=True, time=2.0)"

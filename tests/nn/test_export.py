"""Models under ``torch.export`` and in ONNX: the exported program equals the model, on graphs of other sizes too."""

import io
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import ExportedProgram
from torch_geometric.nn import GCNConv, Sequential

from dissensus import nn
from dissensus.errors import InputError

if not hasattr(torch.compiler, "is_exporting"):
    pytest.skip("torch.export of models needs torch 2.7", allow_module_level=True)

DYNAMIC: Any = torch.export.Dim.DYNAMIC
ANY_SIZE: tuple[Any, Any] = ({0: DYNAMIC}, {1: DYNAMIC})
# torch's own: its tracer passes a deprecated argument, and sparse tensors are in beta.
pytestmark = pytest.mark.filterwarnings("ignore")


def graph(nodes: int, edges: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features and edges with duplicates, self-loops and a node without neighbours."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, nodes - 1, (2, edges - 2), generator=generator)
    repeated = torch.tensor([[0, 0], [1, 1]])
    return torch.rand(nodes, 6, generator=generator), torch.cat([drawn, repeated], 1)


SMALL, LARGE = graph(12, 40), graph(90, 500, seed=1)


def make(name: str, **options: Any) -> torch.nn.Module:
    torch.manual_seed(0)
    return nn.create(name, in_channels=6, hidden_channels=8, out_channels=3, **options).eval()


def export(model: torch.nn.Module) -> ExportedProgram:
    return torch.export.export(model, SMALL, dynamic_shapes=ANY_SIZE, strict=False)


def check(model: torch.nn.Module, program: ExportedProgram) -> None:
    run = program.module()
    for x, edge_index in (SMALL, LARGE, (LARGE[0], LARGE[1][:, :50])):
        with torch.no_grad():
            torch.testing.assert_close(run(x, edge_index), model(x, edge_index), atol=1e-5, rtol=1e-5)


EULER: dict[str, Any] = {"method": "euler", "time": 1.5, "heads": 2, "attention_channels": 4}


@pytest.mark.slow
def test_an_exported_model_takes_any_graph() -> None:
    model = make("bimp", **EULER)
    program = export(model)
    assert all(sizes.upper > 2**40 for sizes in program.range_constraints.values())
    check(model, program)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    check(model, torch.export.load(file))


@pytest.mark.slow
def test_an_exported_model_leaves_the_model_as_it_was() -> None:
    model = make("gcn")
    x, edge_index = SMALL
    before = model(x, edge_index)
    export(model)
    after = model(x, edge_index)
    torch.testing.assert_close(after, before, rtol=0, atol=0)
    after.sum().backward()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bimp", {**EULER, "option_attention": "identity", "attention": "cosine", "saturation": "gelu"}),
        ("bimp", {**EULER, "normalizer": "symmetric"}),
        ("bimp", {**EULER, "attention": "pearson", "self_loops": False, "normalize_features": "hellinger"}),
        ("bimp", {**EULER, "method": "rk4", "attention": "exp_kernel", "normalizer": "squareplus"}),
        ("bimp-aa", {**EULER, "encoder": "mlp", "decoder": "mlp", "normalize_features": True}),
        ("grand-l", {**EULER, "source": True, "learn_time_scale": True}),
        ("kuramoto", EULER),
        ("graphcon-tran", EULER),
        ("gread-fb", {**EULER, "step_size": 0.75}),
        ("gat", {}),
        ("sage", {}),
        ("dgc", {"num_layers": 3, "time": 1.0}),
        ("feature-propagation", {"iterations": 3}),
    ],
)
def test_exported_models_equal_the_models(name: str, options: dict[str, Any]) -> None:
    model = make(name, **options)
    check(model, export(model))


@pytest.mark.slow
def test_a_layer_is_exported_with_the_network_around_it() -> None:
    torch.manual_seed(0)
    opinions = nn.OpinionConv(8, 8, steps=2)
    layers = [(GCNConv(6, 8), "x, edge_index -> x"), (opinions, "x, edge_index -> x")]
    model = Sequential("x, edge_index", layers).eval()
    # PyG's Sequential takes *args, whose shapes are one tuple.
    check(model, torch.export.export(model, SMALL, dynamic_shapes=(ANY_SIZE,), strict=False))


@pytest.mark.slow
def test_edge_weights_are_exported() -> None:
    model = make("grand-l", **EULER)
    x, edge_index = SMALL
    weight = torch.rand(edge_index.shape[1]) + 0.1
    program = torch.export.export(model, (x, edge_index, weight), dynamic_shapes=(*ANY_SIZE, {0: DYNAMIC}))
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x, edge_index, weight), model(x, edge_index, weight))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"method": "dopri5"}, "use the method 'euler' or 'rk4'"),
        ({"method": "midpoint"}, "use the method 'euler' or 'rk4'"),
        ({"depth": "equilibrium"}, "depth='time'"),
        ({**EULER, "rewire": True}, "export the model with rewire=False"),
        ({**EULER, "option_attention": "node", "num_nodes": 12}, "use option_attention='gram'"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_the_cure(options: dict[str, Any], cure: str) -> None:
    with pytest.raises(InputError, match=cure):
        export(make("bimp", **options))


def test_a_model_in_training_mode_is_not_exported() -> None:
    with pytest.raises(InputError, match=r"call model.eval\(\) first"):
        export(make("gcn").train())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bimp", EULER),
        ("bimp", {**EULER, "method": "rk4", "option_attention": "identity"}),
        ("grand-l", EULER),
    ],
)
def test_onnx_equals_the_model(name: str, options: dict[str, Any]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    model = make(name, **options)
    written = torch.onnx.export(export(model), dynamo=True, verbose=False)
    assert written is not None
    session = onnxruntime.InferenceSession(written.model_proto.SerializeToString())
    for x, edge_index in (SMALL, LARGE, (LARGE[0], LARGE[1][:, :0])):
        (found,) = session.run(None, {"x": x.numpy(), "edge_index": edge_index.numpy()})
        with torch.no_grad():
            torch.testing.assert_close(torch.from_numpy(found), model(x, edge_index), atol=1e-5, rtol=1e-5)

"""The measures as a file of their own, as it would be sent to PyG: with torch and nothing else."""

import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch_geometric.nn import GCN
from torch_geometric.utils import add_self_loops, erdos_renyi_graph, get_laplacian, to_dense_adj

from dissensus import measure
from dissensus.measure import _node_similarity

FILE = Path(str(_node_similarity.__file__))


@pytest.fixture
def module() -> ModuleType:
    return _node_similarity


@pytest.mark.slow
def test_the_file_needs_torch_alone(tmp_path: Path) -> None:
    (tmp_path / "node_similarity.py").write_bytes(FILE.read_bytes())
    program = (
        "import sys; sys.modules['dissensus'] = sys.modules['torch_geometric'] = None\n"
        "import torch, node_similarity as m\n"
        "x, e = torch.eye(2), torch.tensor([[0, 1], [1, 0]])\n"
        "print(float(m.dirichlet_energy(x, e)), float(m.mean_average_distance(x, e)))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["2.0", "1.0"]


def test_values_by_hand(module: ModuleType) -> None:
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [5.0, 5.0]])
    edge_index = torch.tensor([[1, 0, 2, 0], [0, 1, 0, 0]])  # 1 -> 0, 0 -> 1, 2 -> 0 and a self-loop; 3 is isolated
    assert float(module.dirichlet_energy(x, edge_index)) == pytest.approx((5 + 5 + 1) / 4)
    weight = torch.tensor([2.0, 0.5, 3.0, 7.0])
    assert float(module.dirichlet_energy(x, edge_index, weight)) == pytest.approx((10 + 2.5 + 3) / 4)
    node_0 = (1 + 1 - math.sqrt(0.5)) / 2
    assert float(module.mean_average_distance(x, edge_index)) == pytest.approx((node_0 + 1) / 2)


def test_energy_is_the_quadratic_form_of_the_laplacian(module: ModuleType) -> None:
    torch.manual_seed(0)
    edge_index, x = erdos_renyi_graph(20, 0.3), torch.randn(20, 4)
    entries, values = get_laplacian(edge_index, num_nodes=20)
    laplacian = to_dense_adj(entries, edge_attr=values)[0]
    expected = 2 * (x * (laplacian @ x)).sum() / 20
    torch.testing.assert_close(module.dirichlet_energy(x, edge_index), expected)
    torch.testing.assert_close(
        module.dirichlet_energy(x, edge_index, relative=True), expected / x.square().sum(), rtol=1e-5, atol=1e-6
    )


def test_self_loops_do_not_change_the_values(module: ModuleType) -> None:
    torch.manual_seed(0)
    edge_index, x = erdos_renyi_graph(12, 0.3), torch.randn(12, 4)
    with_loops = add_self_loops(edge_index, num_nodes=12)[0]
    for function in (module.dirichlet_energy, module.mean_average_distance):
        torch.testing.assert_close(function(x, with_loops), function(x, edge_index))


def test_a_deep_gcn_oversmooths(module: ModuleType) -> None:
    torch.manual_seed(0)
    edge_index, x = erdos_renyi_graph(30, 0.2), torch.randn(30, 8)
    shallow, deep = (GCN(8, 8, layers, act=None).eval()(x, edge_index).detach() for layers in (1, 24))
    energies = [module.dirichlet_energy(state, edge_index, relative=True) for state in (shallow, deep)]
    assert energies[1] < 0.1 * energies[0]
    assert module.mean_average_distance(deep, edge_index) < 0.1 * module.mean_average_distance(shallow, edge_index)


def test_the_package_measures_with_this_file() -> None:
    torch.manual_seed(0)
    edge_index, x = erdos_renyi_graph(12, 0.3), torch.randn(3, 12, 4)
    assert torch.equal(measure.dirichlet_energy(x, edge_index), _node_similarity.dirichlet_energy(x, edge_index))
    assert torch.equal(measure.mad(x, edge_index), _node_similarity.mean_average_distance(x, edge_index))

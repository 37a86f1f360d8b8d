import math

import pytest
import torch
from torch import Tensor

from dissensus import nn
from dissensus.errors import InputError
from dissensus.graph import Pattern, build
from dissensus.nn import CommunicationAttention, OptionAttention
from dissensus.nn._attention import ATTENTIONS, NORMALIZERS

N, CHANNELS, HEADS, WIDTH = 6, 4, 2, 6


def make_graph() -> Pattern:
    return build(torch.tensor([[0, 1, 2, 3, 0, 4], [1, 2, 3, 0, 2, 4]]), N).pattern


def state(seed: int = 0) -> Tensor:
    return torch.randn(N, CHANNELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def communication(kind: str = "scaled_dot", normalizer: str = "softmax", spread: float = 1.0) -> CommunicationAttention:
    torch.manual_seed(0)
    attention = CommunicationAttention(CHANNELS, HEADS, WIDTH, kind, normalizer).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.normal_(std=spread)
    return attention


def score(kind: str, a: Tensor, b: Tensor, variance: Tensor, length: Tensor) -> Tensor:
    """The score of one pair of vectors, as it is written."""
    if kind == "scaled_dot":
        return a @ b / math.sqrt(len(a))
    if kind == "cosine":
        return a @ b / (a.norm() * b.norm())
    if kind == "pearson":
        return torch.corrcoef(torch.stack([a, b]))[0, 1]
    return variance**2 * torch.exp(-(a - b).square().sum() / (2 * length**2))


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_communication_equals_the_literal_form(kind: str, normalizer: str, weighted: bool) -> None:
    attention, pattern, x = communication(kind, normalizer), make_graph(), state()
    weight = torch.rand(pattern.entries, dtype=torch.float64) + 0.5 if weighted else None
    keys, queries = (layer(x).view(N, HEADS, -1) for layer in (attention.key, attention.query))
    expected = torch.zeros(N, N, dtype=torch.float64)
    ones = torch.ones(HEADS)
    variance, length = getattr(attention, "variance", ones), getattr(attention, "length", ones)
    for h in range(HEADS):
        part = torch.zeros(N, N, dtype=torch.float64)
        for e, (i, k) in enumerate(zip(pattern.row.tolist(), pattern.col.tolist(), strict=True)):
            s = score(kind, keys[i, h], queries[k, h], variance[h], length[h])
            positive = (s + (s**2 + 4).sqrt()) / 2 if normalizer == "squareplus" else s.exp()
            part[i, k] = positive * (weight[e] if weight is not None else 1.0)
        rows, columns = part.sum(1, keepdim=True), part.sum(0, keepdim=True)
        expected += part / ((rows * columns).sqrt() if normalizer == "symmetric" else rows) / HEADS
    torch.testing.assert_close(
        pattern.matrix(attention(x, pattern, weight)).to_dense(), expected, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("kind", ATTENTIONS)
@pytest.mark.parametrize("normalizer", ["softmax", "squareplus"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_communication_rows_sum_to_one(kind: str, normalizer: str, spread: float) -> None:
    attention, pattern = communication(kind, normalizer, spread), make_graph()
    if kind == "exp_kernel" and spread == 0.0:
        torch.nn.init.ones_(attention.length)
    values = attention(state() * max(spread, 1.0), pattern)
    assert (values >= 0).all()
    torch.testing.assert_close(pattern.row_sums(values), torch.ones(N, dtype=torch.float64))


def test_communication_starts_near_uniform() -> None:
    torch.manual_seed(0)
    attention, pattern = CommunicationAttention(CHANNELS, HEADS, WIDTH).double(), make_graph()
    uniform = 1.0 / pattern.row_sums(torch.ones(pattern.entries, dtype=torch.float64))[pattern.row.long()]
    torch.testing.assert_close(attention(state(), pattern), uniform, rtol=0.1, atol=0)


@pytest.mark.parametrize("spread", [1.0, 100.0])
def test_symmetric_attention_never_expands(spread: float) -> None:
    attention, pattern = communication(normalizer="symmetric", spread=spread), make_graph()
    dense = pattern.matrix(attention(state() * spread, pattern)).to_dense()
    assert float(torch.linalg.matrix_norm(dense.detach(), 2)) <= 1.0 + 1e-12


def test_symmetric_attention_of_equal_scores_is_the_normalised_adjacency() -> None:
    attention, pattern = communication(normalizer="symmetric", spread=0.0), make_graph()
    adjacency = pattern.matrix(torch.ones(pattern.entries, dtype=torch.float64)).to_dense()
    rows, columns = adjacency.sum(1, keepdim=True), adjacency.sum(0, keepdim=True)
    torch.testing.assert_close(
        pattern.matrix(attention(state(), pattern)).to_dense(), adjacency / (rows * columns).sqrt()
    )


@pytest.mark.parametrize("normalizer", ["softmax", "symmetric"])
@pytest.mark.parametrize("kind", ATTENTIONS)
def test_communication_gradients(kind: str, normalizer: str) -> None:
    attention, pattern = communication(kind, normalizer), make_graph()
    weight = torch.rand(pattern.entries, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in attention.named_parameters()]

    def run(x: Tensor, weight: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(attention, dict(zip(names, parameters, strict=True)), (x, pattern, weight))

    inputs = (state().requires_grad_(), weight, *attention.parameters())
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize(("heads", "width"), [(4, 6), (3, 2)])
def test_heads_that_do_not_divide(heads: int, width: int) -> None:
    with pytest.raises(InputError, match=r"heads = .*choose attention_channels = (\d+)") as caught:
        CommunicationAttention(CHANNELS, heads, width)
    CommunicationAttention(CHANNELS, heads, int(str(caught.value).rsplit(" ", 1)[1]))


@pytest.mark.parametrize(("heads", "width"), [(0, 4), (2, 0), (-1, 4)])
def test_no_heads_and_no_channels(heads: int, width: int) -> None:
    with pytest.raises(InputError, match="whole number of at least 1"):
        CommunicationAttention(CHANNELS, heads, width)


def test_unknown_kinds() -> None:
    with pytest.raises(InputError, match=r"unknown attention 'cosin': did you mean 'cosine'\? Known: scaled_dot"):
        CommunicationAttention(CHANNELS, HEADS, WIDTH, "cosin")
    with pytest.raises(InputError, match="unknown normalizer 'softmx': did you mean 'softmax'"):
        CommunicationAttention(CHANNELS, HEADS, WIDTH, "cosine", "softmx")
    with pytest.raises(InputError, match=r"unknown option_attention 'grm': did you mean 'gram'\? Known: node, gram"):
        OptionAttention("grm", CHANNELS, HEADS, WIDTH, 0.0)


def options(kind: str, own_score: float = 0.0) -> OptionAttention:
    torch.manual_seed(0)
    return OptionAttention(kind, CHANNELS, HEADS, WIDTH, own_score, N).double()


@pytest.mark.parametrize("kind", ["node", "gram"])
def test_options_equal_the_literal_form(kind: str) -> None:
    attention, x = options(kind, 0.7), state()
    vectors = x.T if kind == "node" else x.T @ x / N
    keys, queries = (layer(vectors).view(CHANNELS, HEADS, -1) for layer in (attention.key, attention.query))
    expected = torch.zeros(CHANNELS, CHANNELS, dtype=torch.float64)
    for h in range(HEADS):
        scores = keys[:, h] @ queries[:, h].T / math.sqrt(WIDTH / HEADS) + 0.7 * torch.eye(CHANNELS)
        expected += scores.softmax(1) / HEADS
    torch.testing.assert_close(attention(x), expected)


@pytest.mark.parametrize("kind", ["node", "gram"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_option_rows_sum_to_one(kind: str, scale: float) -> None:
    a_o = options(kind)(state() * scale)
    assert (a_o >= 0).all()
    torch.testing.assert_close(a_o.sum(1), torch.ones(CHANNELS, dtype=torch.float64))


def test_own_score_makes_options_sharp_and_is_learnable() -> None:
    x = state()
    diagonals = [options("gram", beta)(x).diagonal().mean().item() for beta in (0.0, 2.0, 8.0, 40.0)]
    assert diagonals == sorted(diagonals)
    assert diagonals[-1] == pytest.approx(1.0)
    attention = options("gram", 2.0)
    attention(x).diagonal().sum().backward()
    assert attention.own_score.grad > 0


def test_identity_is_the_number_one() -> None:
    attention = options("identity")
    assert attention(state()) == 1.0
    assert not list(attention.parameters())
    attention.reset_parameters()


def test_gram_does_not_see_the_order_of_nodes_and_node_does() -> None:
    x, order = state(), torch.randperm(N, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(options("gram")(x[order]), options("gram")(x))
    assert (options("node")(x[order]) - options("node")(x)).abs().max() > 1e-3


def test_gram_of_a_batch_is_graphs_one_by_one() -> None:
    attention, x = options("gram", 1.0), state()
    sizes = (2, 0, 1, 3)
    together = attention(x, sizes)
    assert together.shape == (4, CHANNELS, CHANNELS)
    for one, part in zip(together, x.split(sizes), strict=True):
        torch.testing.assert_close(one, attention(part))


def test_node_is_tied_to_one_graph() -> None:
    attention = options("node")
    with pytest.raises(InputError, match=r"has 5 nodes.*one graph, of 6 nodes: use option_attention='gram'"):
        attention(state()[:5])
    with pytest.raises(InputError, match="2 graphs"):
        attention(state(), (3, 3))
    for missing in (None, 0, -3):
        with pytest.raises(InputError, match="needs num_nodes"):
            OptionAttention("node", CHANNELS, HEADS, WIDTH, 0.0, missing)


def test_no_own_score_is_the_softmax_of_the_paper() -> None:
    model = nn.BIMP(4, 3, 2, own_score=0.0)
    assert model.options.own_score is None
    assert not [name for name, _ in model.named_parameters() if "own_score" in name]
    x, edges = torch.rand(6, 4), torch.tensor([[0, 1], [1, 2]])
    options = model.graphs(x, edges)[1]
    torch.testing.assert_close(options.sum(1), torch.ones(3))
    model(x, edges).sum().backward()

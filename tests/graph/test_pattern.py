import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from dissensus.graph import (
    Pattern,
    _pattern,
    build,
    inner,
    product,
    product_vjp,
    products,
    products_vjp,
    row_normalize,
    row_softmax,
    row_sums,
    sddmm,
    spmm,
)


def make(rows: int = 5, columns: int = 4, seed: int = 0) -> tuple[Pattern, Tensor, Tensor]:
    """A random rectangular pattern with an empty row, its values, and the dense matrix."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(rows, columns, generator=generator) < 0.5
    mask[2] = False
    row, col = mask.nonzero(as_tuple=True)
    values = torch.randn(row.numel(), generator=generator, dtype=torch.float64)
    dense = torch.zeros(rows, columns, dtype=torch.float64)
    dense[row, col] = values
    return Pattern(row, col, (rows, columns)), values, dense


def normal(*shape: int, seed: int = 1, grad: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_(grad)


@pytest.fixture(params=["fast", "fallback"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kernels of MKL, and what stands in for them."""
    if request.param == "fallback":
        monkeypatch.setattr(_pattern, "_MKL", False)
    elif not _pattern._MKL:
        pytest.skip("MKL is missing")
    return str(request.param)


def test_indices_are_int32() -> None:
    pattern, _, _ = make()
    assert {t.dtype for t in (pattern.row, pattern.col, pattern.rowptr, pattern.T.row, pattern.T.rowptr)} == {
        torch.int32
    }


def test_indices_are_int64_where_int32_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pattern, "_INT32_MAX", 3)
    pattern, values, dense = make()
    assert pattern.row.dtype == pattern.rowptr.dtype == torch.int64
    x = normal(4, 3)
    torch.testing.assert_close(spmm(pattern, values, x), dense @ x)


def test_repr_says_size() -> None:
    pattern, _, dense = make()
    assert repr(pattern) == f"Pattern(5 x 4, {int((dense != 0).sum())} entries)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_equal_dense(path: str, dtype: torch.dtype) -> None:
    pattern, values, dense = make()
    assert pattern.fast == (path == "fast")
    values, dense, x, a = values.to(dtype), dense.to(dtype), normal(4, 3).to(dtype), normal(5, 3, seed=2).to(dtype)
    torch.testing.assert_close(product(pattern, values, x), dense @ x)
    torch.testing.assert_close(product(pattern, values, x, add=a), dense @ x + a)
    out = torch.full_like(a, torch.nan)
    assert product(pattern, values, x, out=out) is out
    torch.testing.assert_close(out, dense @ x)
    torch.testing.assert_close(product(pattern, values, x, add=a, out=out), dense @ x + a)
    torch.testing.assert_close(product(pattern.T, values[pattern.transpose_order], a), dense.T @ a)
    expected = (a @ x.T)[pattern.row.long(), pattern.col.long()]
    torch.testing.assert_close(inner(pattern, a, x), expected)
    total = torch.ones_like(values)
    inner(pattern, a, x, out=total)
    torch.testing.assert_close(total, expected + 1.0)
    inner(pattern, a, x, scale=-0.5, out=total)
    torch.testing.assert_close(total, 0.5 * expected + 1.0)
    torch.testing.assert_close(inner(pattern, a, x, scale=3.0), 3.0 * expected)
    torch.testing.assert_close(pattern.matrix(values).to_dense(), dense)


def test_product_may_write_to_what_it_adds(path: str) -> None:
    pattern, values, dense = make()
    x, a = normal(4, 3), normal(5, 3, seed=2)
    expected = dense @ x + a
    torch.testing.assert_close(product(pattern, values, x, add=a, out=a), expected)


@pytest.fixture(params=[1, 7, 40, 10**6])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """No factor fits in the cache; so many rows and entries, of 12 bytes, in a piece."""
    for name, value in (("CACHED", 0), ("_PIECE", 12 * request.param), ("_HELD", 12 * request.param)):
        monkeypatch.setattr(_pattern, name, value)
    return int(request.param)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_in_pieces(path: str, piece: int, dtype: torch.dtype) -> None:
    pattern, values, dense = make(30, 20)
    # The last rows are empty, and with them the last pieces.
    pattern, dense = Pattern(pattern.row, pattern.col, (40, 20)), torch.nn.functional.pad(dense, (0, 0, 0, 10))
    values, dense, x, a, g = (v.to(dtype) for v in (values, dense, normal(20, 3), normal(40, 3), normal(40, 3, seed=3)))
    torch.testing.assert_close(product(pattern, values, x), dense @ x)
    torch.testing.assert_close(product(pattern, values, x, add=a), dense @ x + a)
    parts = list(products(pattern, values, x, add=a))
    assert (len(parts) > 1) == (path == "fast" and piece < 1000)
    torch.testing.assert_close(torch.cat([part for _, part in parts]), dense @ x + a)
    torch.testing.assert_close(torch.cat([a[rows] for rows, _ in parts]), a)

    values_t, b = pattern.transposed(values), normal(20, 3, seed=4).to(dtype)
    by_values = torch.ones_like(values)
    expected = 1.0 + (g @ x.T)[pattern.row, pattern.col]
    out = torch.empty_like(x)
    assert product_vjp(pattern, values_t, x, g, by_values, out=out) is out
    torch.testing.assert_close(out, dense.T @ g)
    torch.testing.assert_close(by_values, expected)
    torch.testing.assert_close(product_vjp(pattern, values_t, x, g, None), dense.T @ g)
    by_values = torch.ones_like(values)
    torch.testing.assert_close(product_vjp(pattern, values_t, x, g, by_values), dense.T @ g)
    torch.testing.assert_close(by_values, expected)
    by_values = torch.ones_like(values)
    parts = list(products_vjp(pattern, values_t, x, g, by_values, add=b))
    torch.testing.assert_close(torch.cat([part for _, part in parts]), dense.T @ g + b)
    torch.testing.assert_close(by_values, expected)
    by_values = torch.ones_like(values)
    parts = list(products_vjp(pattern, values_t, x, g, by_values, add=b, scale=3.0))
    torch.testing.assert_close(torch.cat([part for _, part in parts]), 3.0 * (dense.T @ g + b))
    torch.testing.assert_close(by_values, 1.0 + 3.0 * (expected - 1.0))


def test_pieces_cover_the_rows() -> None:
    pattern, _, _ = make(30, 20)
    for size in (0, 1, 5, 64, 10**6):
        pieces = pattern.pieces(size)
        assert pieces is pattern.pieces(size)
        assert [i for piece in pieces for i in range(30)[piece.rows]] == list(range(30))
        assert [e for piece in pieces for e in range(pattern.entries)[piece.entries]] == list(range(pattern.entries))
        for piece in pieces:
            assert piece.rows.start < piece.rows.stop
            assert torch.equal(piece.pattern.row + piece.rows.start, pattern.row[piece.entries])
            assert torch.equal(piece.pattern.col, pattern.col[piece.entries])
            assert torch.equal(piece.near.rowptr, piece.pattern.rowptr)
    assert len(pattern.pieces(10**6)) == 1
    entries = torch.arange(pattern.entries)
    assert torch.equal(pattern.transposed(entries)[pattern.transposed_back], entries)


def test_bags_agree_with_the_product_of_the_library() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = build(torch.randint(300, (2, 3000), generator=generator), 300)
    values, x = torch.randn(graph.pattern.entries, generator=generator), torch.randn(300, 80, generator=generator)
    reference = torch.sparse.mm(graph.pattern.matrix(values), x)
    torch.testing.assert_close(product(graph.pattern, values, x), reference)


def test_gathered_inner_products_in_pieces() -> None:
    pattern, _, _ = make()
    a, b = normal(5, 3), normal(4, 3, seed=2)
    whole, pieces = (_pattern._inner_gathered(pattern, a, b, chunk) for chunk in (100, 2))
    torch.testing.assert_close(whole, pieces, rtol=0, atol=0)


def test_spmm_gradients(path: str) -> None:
    pattern, values, _ = make()
    values, x = values.requires_grad_(), normal(4, 2, grad=True)
    assert gradcheck(lambda v, x: spmm(pattern, v, x), (values, x))
    assert gradgradcheck(lambda v, x: spmm(pattern, v, x), (values, x))


def test_sddmm_gradients(path: str) -> None:
    pattern, _, _ = make()
    a, b = normal(5, 2, grad=True), normal(4, 2, seed=2, grad=True)
    assert gradcheck(lambda a, b: sddmm(pattern, a, b), (a, b))
    assert gradgradcheck(lambda a, b: sddmm(pattern, a, b), (a, b))


def test_spmm_of_strided_inputs(path: str) -> None:
    pattern, values, dense = make()
    strided = torch.stack([values, -values], 1)[:, 0]
    x = normal(3, 4).t()
    torch.testing.assert_close(spmm(pattern, strided, x), dense @ x)


@pytest.mark.parametrize("heads", [(), (2,)])
def test_row_softmax_is_the_softmax_of_each_row(heads: tuple[int, ...]) -> None:
    pattern, values, _ = make()
    scores = normal(values.numel(), *heads)
    weight = normal(values.numel(), seed=3).exp()
    plain, weighted = row_softmax(pattern, scores), row_softmax(pattern, scores, weight)
    for i in range(5):
        of_row = pattern.row == i
        torch.testing.assert_close(plain[of_row], scores[of_row].softmax(0))
        logs = weight[of_row].log().view(-1, *[1] * len(heads))
        torch.testing.assert_close(weighted[of_row], (scores[of_row] + logs).softmax(0))


def test_row_softmax_does_not_overflow() -> None:
    pattern, values, _ = make()
    result = row_softmax(pattern, values * 1e6)
    sums = row_sums(pattern, result)
    assert torch.isfinite(result).all()
    torch.testing.assert_close(sums[[0, 1, 3, 4]], torch.ones(4, dtype=torch.float64))


def test_row_softmax_gradients() -> None:
    pattern, values, _ = make()
    weight = normal(values.numel(), seed=3).exp().detach().requires_grad_()
    scores = normal(values.numel(), 2, grad=True)
    assert gradcheck(lambda s, w: row_softmax(pattern, s, w), (scores, weight))


def test_row_normalize_makes_rows_sum_to_one() -> None:
    pattern, values, _ = make()
    sums = row_sums(pattern, row_normalize(pattern, values.abs() + 0.1))
    torch.testing.assert_close(sums[[0, 1, 3, 4]], torch.ones(4, dtype=torch.float64))
    assert sums[2] == 0


def test_without_entries() -> None:
    empty = Pattern(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (3, 2))
    values, x = torch.zeros(0, requires_grad=True), torch.ones(2, 4, requires_grad=True)
    y = spmm(empty, values, x)
    assert torch.equal(y, torch.zeros(3, 4))
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 4))
    assert sddmm(empty, torch.ones(3, 4), x).shape == (0,)
    assert row_softmax(empty, values).shape == (0,)
    assert empty.T.shape == (2, 3)


def test_pattern_first_transposed_in_inference_mode_serves_second_derivatives() -> None:
    pattern, values, _ = make()
    with torch.inference_mode():
        pattern.T  # noqa: B018 (prepared on first use)
    x = normal(4, 2, grad=True)
    assert gradgradcheck(lambda v, x: spmm(pattern, v, x), (values.requires_grad_(), x))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_equals_cpu() -> None:
    edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    results = []
    for device in ("cpu", "cuda"):
        pattern = build(edge_index.to(device), 5).pattern
        y = x.to(device).requires_grad_()
        a = row_softmax(pattern, sddmm(pattern, y, y))
        out = spmm(pattern, a, y)
        out.square().sum().backward()
        results.append((out.detach().cpu(), y.grad.cpu()))
    torch.testing.assert_close(*results)

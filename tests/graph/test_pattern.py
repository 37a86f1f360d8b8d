import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from dissensus.graph import Pattern, _pattern, build
from dissensus.kernels import _sparse, sampled_product


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
    """torch's sparse products with MKL, and what stands in for them."""
    if request.param == "fallback":
        monkeypatch.setattr(_sparse, "_MKL", False)
    elif not _sparse._MKL:
        pytest.skip("MKL is missing")
    return str(request.param)


def inner(pattern: Pattern, a: Tensor, b: Tensor, **options: object) -> Tensor:
    return sampled_product(pattern.rowptr, pattern.row, pattern.col, a, b, **options)


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
    torch.testing.assert_close(pattern.spmm(values, x), dense @ x)


def test_repr_says_size() -> None:
    pattern, _, dense = make()
    assert repr(pattern) == f"Pattern(5 x 4, {int((dense != 0).sum())} entries)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_equal_dense(path: str, dtype: torch.dtype) -> None:
    pattern, values, dense = make()
    values, dense, x, a = values.to(dtype), dense.to(dtype), normal(4, 3).to(dtype), normal(5, 3, seed=2).to(dtype)
    torch.testing.assert_close(pattern.product(values, x), dense @ x)
    torch.testing.assert_close(pattern.product(values, x, add=a), dense @ x + a)
    out = torch.full_like(a, torch.nan)
    assert pattern.product(values, x, out=out) is out
    torch.testing.assert_close(out, dense @ x)
    torch.testing.assert_close(pattern.product(values, x, add=a, out=out), dense @ x + a)
    torch.testing.assert_close(pattern.T.product(values[pattern.transpose_order], a), dense.T @ a)
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
    torch.testing.assert_close(pattern.product(values, x, add=a, out=a), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 3, 16, 33, 80, 128, 150, 260])
def test_products_and_cotangents_of_any_width(path: str, channels: int, dtype: torch.dtype) -> None:
    pattern, values, dense = make(30, 20)
    # The last rows are empty.
    pattern, dense = Pattern(pattern.row, pattern.col, (40, 20)), torch.nn.functional.pad(dense, (0, 0, 0, 10))
    values, dense = values.to(dtype), dense.to(dtype)
    x, b, a, g = (normal(n, channels, seed=i).to(dtype) for i, n in enumerate((20, 20, 40, 40)))
    torch.testing.assert_close(pattern.product(values, x), dense @ x)
    torch.testing.assert_close(pattern.product(values, x, add=a, scale=-2.0), -2.0 * (dense @ x + a))

    values_t, out = pattern.transposed(values), torch.empty_like(x)
    expected = (g @ x.T)[pattern.row, pattern.col]
    for add, scale in ((None, 1.0), (b, 1.0), (None, 3.0), (b, 3.0)):
        grad_values = torch.ones_like(values)
        assert pattern.product_vjp(values_t, x, g, grad_values, add=add, scale=scale, out=out) is out
        torch.testing.assert_close(out, scale * (dense.T @ g + (0.0 if add is None else add)))
        torch.testing.assert_close(grad_values, 1.0 + scale * expected, rtol=1e-5, atol=1e-4)
        torch.testing.assert_close(pattern.product_vjp(values_t, x, g, None, add=add, scale=scale), out)
        torch.testing.assert_close(pattern.product_vjp(values_t, x, g, grad_values, add=add, scale=scale), out)


def test_results_do_not_depend_on_the_number_of_threads(path: str) -> None:
    generator = torch.Generator().manual_seed(0)
    pattern = build(torch.randint(300, (2, 3000), generator=generator), 300).pattern
    values, x, g = (torch.randn(*n, generator=generator) for n in ((pattern.entries,), (300, 80), (300, 80)))
    results, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            grad_values = torch.zeros_like(values)
            results.append((pattern.product(values, x), pattern.product_vjp(values, x, g, grad_values), grad_values))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("wrong", ["values", "x", "add", "out"])
def test_wrong_shapes_are_errors(path: str, wrong: str) -> None:
    pattern, values, _ = make()
    given = {"values": values.float(), "x": torch.ones(4, 16), "add": torch.ones(5, 16), "out": torch.ones(5, 16)}
    given[wrong] = given[wrong][:-1]
    with pytest.raises((RuntimeError, IndexError)):
        pattern.product(given.pop("values"), given.pop("x"), **given)


def test_a_gradient_of_the_wrong_length_is_an_error(path: str) -> None:
    pattern, values, _ = make()
    with pytest.raises(ValueError, match="it must have 10"):
        pattern.product_vjp(values.float(), torch.ones(4, 16), torch.ones(5, 16), torch.zeros(pattern.entries - 1))


def test_products_agree_with_the_library(path: str) -> None:
    generator = torch.Generator().manual_seed(0)
    graph = build(torch.randint(300, (2, 3000), generator=generator), 300)
    values, x = torch.randn(graph.pattern.entries, generator=generator), torch.randn(300, 80, generator=generator)
    reference = torch.sparse.mm(graph.pattern.matrix(values), x)
    torch.testing.assert_close(graph.pattern.product(values, x), reference)


def test_gathered_inner_products_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern, _, _ = make()
    a, b = normal(5, 3), normal(4, 3, seed=2)
    monkeypatch.setattr(_sparse, "_MKL", False)
    whole = inner(pattern, a, b)
    monkeypatch.setattr(_sparse, "_CHUNK", 2)
    torch.testing.assert_close(whole, inner(pattern, a, b), rtol=0, atol=0)


def test_spmm_gradients(path: str) -> None:
    pattern, values, _ = make()
    values, x = values.requires_grad_(), normal(4, 2, grad=True)
    assert gradcheck(lambda v, x: pattern.spmm(v, x), (values, x))
    assert gradgradcheck(lambda v, x: pattern.spmm(v, x), (values, x))


def test_sddmm_gradients(path: str) -> None:
    pattern, _, _ = make()
    a, b = normal(5, 2, grad=True), normal(4, 2, seed=2, grad=True)
    assert gradcheck(lambda a, b: pattern.sddmm(a, b), (a, b))
    assert gradgradcheck(lambda a, b: pattern.sddmm(a, b), (a, b))


def test_spmm_of_strided_inputs(path: str) -> None:
    pattern, values, dense = make()
    strided = torch.stack([values, -values], 1)[:, 0]
    x = normal(3, 4).t()
    torch.testing.assert_close(pattern.spmm(strided, x), dense @ x)


@pytest.mark.parametrize("heads", [(), (2,)])
def test_row_softmax_is_the_softmax_of_each_row(heads: tuple[int, ...]) -> None:
    pattern, values, _ = make()
    scores = normal(values.numel(), *heads)
    weight = normal(values.numel(), seed=3).exp()
    plain, weighted = pattern.row_softmax(scores), pattern.row_softmax(scores, weight)
    for i in range(5):
        of_row = pattern.row == i
        torch.testing.assert_close(plain[of_row], scores[of_row].softmax(0))
        logs = weight[of_row].log().view(-1, *[1] * len(heads))
        torch.testing.assert_close(weighted[of_row], (scores[of_row] + logs).softmax(0))


def test_row_softmax_does_not_overflow() -> None:
    pattern, values, _ = make()
    result = pattern.row_softmax(values * 1e6)
    sums = pattern.row_sums(result)
    assert torch.isfinite(result).all()
    torch.testing.assert_close(sums[[0, 1, 3, 4]], torch.ones(4, dtype=torch.float64))


def test_row_softmax_gradients() -> None:
    pattern, values, _ = make()
    weight = normal(values.numel(), seed=3).exp().detach().requires_grad_()
    scores = normal(values.numel(), 2, grad=True)
    assert gradcheck(lambda s, w: pattern.row_softmax(s, w), (scores, weight))


def test_row_normalize_makes_rows_sum_to_one() -> None:
    pattern, values, _ = make()
    sums = pattern.row_sums(pattern.row_normalize(values.abs() + 0.1))
    torch.testing.assert_close(sums[[0, 1, 3, 4]], torch.ones(4, dtype=torch.float64))
    assert sums[2] == 0


def test_without_entries() -> None:
    empty = Pattern(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (3, 2))
    values, x = torch.zeros(0, requires_grad=True), torch.ones(2, 4, requires_grad=True)
    y = empty.spmm(values, x)
    assert torch.equal(y, torch.zeros(3, 4))
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 4))
    assert empty.sddmm(torch.ones(3, 4), x).shape == (0,)
    assert empty.row_softmax(values).shape == (0,)
    assert empty.T.shape == (2, 3)


def test_pattern_first_transposed_in_inference_mode_serves_second_derivatives() -> None:
    pattern, values, _ = make()
    with torch.inference_mode():
        pattern.T  # noqa: B018 (prepared on first use)
    x = normal(4, 2, grad=True)
    assert gradgradcheck(lambda v, x: pattern.spmm(v, x), (values.requires_grad_(), x))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_equals_cpu() -> None:
    edge_index = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    results = []
    for device in ("cpu", "cuda"):
        pattern = build(edge_index.to(device), 5).pattern
        y = x.to(device).requires_grad_()
        a = pattern.row_softmax(pattern.sddmm(y, y))
        out = pattern.spmm(a, y)
        out.square().sum().backward()
        results.append((out.detach().cpu(), y.grad.cpu()))
    torch.testing.assert_close(*results)

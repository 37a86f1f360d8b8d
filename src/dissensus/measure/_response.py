"""The frequency response of a model over the spectrum of its graph."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops, to_undirected

from dissensus.errors import InputError
from dissensus.graph import check_edge_index
from dissensus.measure._checks import check_state
from dissensus.measure._edges import dirichlet_energy
from dissensus.measure._reading import Forward, call, check_data, evaluating

# Up to this many nodes the Laplacian is diagonalised (which takes a few seconds); above, only products are used.
_EXACT_NODES = 3000
_ORDER = 80
_NOISE_COLUMNS = 4
# Number of entries of the sketch of J'W, enough for a sketching error well below one per cent.
_SKETCH_ENTRIES = 2**20


class FilterResponse(NamedTuple):
    """The response of a model over the spectrum of its graph; see :func:`filter_response`.

    ``frequency [bands]`` has the midpoints of equal bands of [0, 2], and ``gain [bands]`` the response in each band
    (NaN if the graph has no eigenvalue there). The shares ``sharpening`` and ``smoothing`` add up to 1.
    """

    frequency: Tensor
    gain: Tensor
    sharpening: float
    smoothing: float


def filter_response(
    model: nn.Module, data: Data, *, bands: int = 20, probes: int = 8, seed: int = 0, forward: Forward | None = None
) -> FilterResponse:
    r"""Frequency response of a model at its input, and the shares of it that sharpen and smooth.

    Frequencies are the eigenvalues :math:`0 = \lambda_1 \le \dots \le \lambda_n \le 2`, with eigenvectors :math:`u_k`,
    of the symmetric normalised Laplacian :math:`L = I - D^{-1/2} A D^{-1/2}`. The graph is taken as undirected and
    unweighted, without self-loops. With the Jacobian J of the model's output with respect to ``data.x``, the gain at a
    frequency is

    .. math:: g_k^2 = \frac{1}{c} \sum_{m=1}^{c} \| J (u_k \otimes e_m) \|^2,

    which is the root mean square output per unit of input at that frequency, over all input channels. The shares are

    .. math:: \text{sharpening} = \frac{\sum_k \frac{\lambda_k}{2} g_k^2}{\sum_k g_k^2}, \qquad
       \text{smoothing} = \frac{\sum_k (1 - \frac{\lambda_k}{2}) g_k^2}{\sum_k g_k^2}.

    The trace of L is n, so a model that treats all frequencies alike, such as an MLP, has two equal shares. A model
    that averages over neighbours has a larger smoothing share, and one that increases differences a larger sharpening
    share.

    The sums over k are traces, which are estimated with random output directions W as :math:`E\,\|U_b' J' W\|^2` for a
    band b. Every probe takes one forward and one backward pass. Up to 3000 nodes, eigenvectors are exact. For larger
    graphs, bands are approximated by Jackson-damped Chebyshev polynomials of L applied to a random sketch of
    :math:`J'W`, so no dense n x n matrix is formed, but the gain of a band includes a little of its neighbours. The
    shares need no eigenvectors for any size.

    Nodes without neighbours have no frequency and are left out. For a graph without edges (gain NaN) and for a model
    whose Jacobian is zero (gain 0), both shares are 1/2. If the Jacobian is not finite, all values are NaN.

    Args:
        model: any module whose output is differentiable in ``data.x``. It is run in evaluation mode and not changed.
        data: graph with ``x [n, in_channels]`` and ``edge_index``.
        bands: number of equal bands of [0, 2]. With 0, only the shares are computed, which is faster.
        probes: number of random output directions. The relative error of the shares decreases as ``1 / sqrt(probes)``.
        seed: seed of the random directions.
        forward: function called as ``forward(model, data)`` to run the model. The default is ``model(data.x,
            data.edge_index)``, with further fields as in :func:`watch`.

    Returns:
        ``frequency [bands]``, the midpoints of the bands; ``gain [bands]``, with NaN for bands without an eigenvalue;
        and the shares ``sharpening`` and ``smoothing``, which add up to 1.
    """
    check_data(data)
    check_state(data.x)
    check_edge_index(data.edge_index, int(data.x.size(0)))
    if bands < 0 or probes < 1:
        raise InputError(f"bands is {bands} and probes is {probes}: give at least 0 bands and at least 1 probe")
    frequency = (torch.arange(bands, dtype=torch.float64) + 0.5) * (2 / max(1, bands))
    columns = max(1, min(int(data.x.size(-1)), _SKETCH_ENTRIES // int(data.x.size(0)) // probes))
    vjps = _random_vjps(model, data, probes, columns, seed, forward)

    edges, connected = _simple_graph(data.edge_index.cpu(), int(data.x.size(0)))
    if not edges.numel():
        return FilterResponse(frequency, torch.full_like(frequency, torch.nan), 0.5, 0.5)
    vjps = vjps[connected]
    if not bool(vjps.isfinite().all()):
        return FilterResponse(frequency, torch.full_like(frequency, torch.nan), torch.nan, torch.nan)
    sharpening = _sharpening(vjps, edges)
    if not bands:
        return FilterResponse(frequency, frequency.clone(), sharpening, 1 - sharpening)
    laplacian = _laplacian(edges, len(connected))
    if len(connected) <= _EXACT_NODES:
        energy, count = _exact_bands(laplacian, vjps.numpy(), bands)
    else:
        energy, count = _chebyshev_bands(laplacian, vjps.numpy(), bands, np.random.default_rng(seed))
    # The approximation of a band leaks into its neighbours, so an empty band has a count that is small but not zero.
    occupied = count > 0.5
    gain = np.sqrt(energy / (probes * data.x.size(-1) * np.where(occupied, count, 1.0)))
    return FilterResponse(frequency, torch.from_numpy(np.where(occupied, gain, np.nan)), sharpening, 1 - sharpening)


def _random_vjps(model: nn.Module, data: Data, probes: int, columns: int, seed: int, forward: Forward | None) -> Tensor:
    """``J' W`` for random output directions W, ``[n, probes * columns]`` in double precision on the CPU.

    If a probe has more channels than ``columns``, random signs mix them to that many columns, which preserves the
    expected energy.
    """
    data = data.clone()
    data.x = data.x.detach().requires_grad_()
    nodes, channels = data.x.shape
    generator = torch.Generator().manual_seed(seed)
    vjps = torch.empty(probes, nodes, columns, dtype=torch.float64)
    with torch.enable_grad(), evaluating(model):
        for k in range(probes):
            # One forward pass for every backward pass, because some models cannot run backward twice.
            gradient = _random_gradient(call(model, data, forward), data.x, generator).double().cpu()
            signs = torch.randint(0, 2, (channels, columns), generator=generator).double() * 2 - 1
            vjps[k] = gradient if columns == channels else gradient @ (signs / columns**0.5)
    return vjps.transpose(0, 1).reshape(nodes, -1)


def _random_gradient(output: Any, x: Tensor, generator: torch.Generator) -> Tensor:
    if not isinstance(output, Tensor):
        raise InputError(f"the model returns a {type(output).__name__}, not a tensor: select one with forward=")
    gradient = None
    if output.requires_grad:
        direction = torch.randn(output.shape, generator=generator).to(output)
        (gradient,) = torch.autograd.grad(output, x, direction, allow_unused=True)
    if gradient is None:
        raise InputError(
            "no gradient reaches data.x: the model must not detach its input, and forward= must use data.x"
        )
    return gradient


def _simple_graph(edge_index: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """The edges of the undirected graph without self-loops and duplicates, and the nodes with at least one edge.

    The edges number these nodes from 0.
    """
    edge_index = remove_self_loops(edge_index.long())[0]
    edge_index = coalesce(to_undirected(edge_index, num_nodes=nodes), num_nodes=nodes)
    connected, relabelled = edge_index.unique(return_inverse=True)
    return relabelled.view(2, -1), connected


def _sharpening(vjps: Tensor, edges: Tensor) -> float:
    """``tr(G' L G) / (2 tr(G' G))``, where ``tr(G' L G)`` is the sum of squared differences of ``D^-1/2 G``."""
    degree = torch.bincount(edges[0]).double()
    largest = float(vjps.abs().max())
    if largest == 0:
        return 0.5
    vjps = vjps / largest
    energy = float(dirichlet_energy(vjps / degree.sqrt()[:, None], edges)) * len(degree) / 2
    return energy / (2 * float(vjps.square().sum()))


def _laplacian(edges: Tensor, nodes: int) -> sparse.csr_array:
    source, target = edges.numpy()
    degree = np.bincount(source, minlength=nodes)
    weight = 1 / np.sqrt(degree[source] * degree[target])
    return sparse.eye_array(nodes, format="csr") - sparse.csr_array((weight, (source, target)), shape=(nodes, nodes))


Bands = tuple[NDArray[np.float64], NDArray[np.float64]]


def _exact_bands(laplacian: sparse.csr_array, signal: NDArray[np.float64], bands: int) -> Bands:
    """The energy of ``signal [n, columns]`` in each band, and the number of eigenvalues in the band."""
    eigenvalues, eigenvectors = np.linalg.eigh(laplacian.toarray())
    band = np.clip((eigenvalues * bands / 2).astype(int), 0, bands - 1)
    energy = np.square(eigenvectors.T @ signal).sum(1)
    return np.bincount(band, energy, bands).astype(float), np.bincount(band, minlength=bands).astype(float)


def _chebyshev_bands(
    laplacian: sparse.csr_array, signal: NDArray[np.float64], bands: int, generator: np.random.Generator
) -> Bands:
    """An estimate of :func:`_exact_bands` from Chebyshev moments ``<s, T_k(L - I) s>``.

    The moments of the signal give the energies, and those of white noise the numbers of eigenvalues.
    """
    nodes, columns = signal.shape
    noise = generator.choice([-1.0, 1.0], (nodes, _NOISE_COLUMNS)) / np.sqrt(_NOISE_COLUMNS)
    both = np.concatenate([signal, noise], axis=1)
    shifted = laplacian - sparse.eye_array(nodes, format="csr")
    moments = np.empty((_ORDER + 1, 2))
    before, now = shifted @ both, both
    for k in range(_ORDER + 1):
        inner = np.einsum("nc,nc->c", both, now)
        moments[k] = inner[:columns].sum(), inner[columns:].sum()
        # T_{k+1} = 2 z T_k - T_{k-1}; with T_{-1} = T_1 the first step is not a special case.
        before, now = now, 2 * (shifted @ now) - before
    energy, count = (_band_coefficients(bands) @ moments).clip(min=0).T
    return energy, count


def _band_coefficients(bands: int) -> NDArray[np.float64]:
    """Jackson-damped Chebyshev coefficients ``[bands, order + 1]`` of the band indicators in ``z = lambda - 1``."""
    k = np.arange(1, _ORDER + 1)
    angle = np.arccos(np.clip(np.linspace(-1, 1, bands + 1), -1, 1))
    upper, lower = angle[:-1, None], angle[1:, None]
    series = np.concatenate(
        [(upper - lower) / np.pi, 2 * (np.sin(k * upper) - np.sin(k * lower)) / (np.pi * k)], axis=1
    )
    step = np.pi / (_ORDER + 2)
    j = np.arange(_ORDER + 1)
    damping = ((_ORDER + 2 - j) * np.sin(step) * np.cos(j * step) + np.cos(step) * np.sin(j * step)) / (
        (_ORDER + 2) * np.sin(step)
    )
    return series * damping

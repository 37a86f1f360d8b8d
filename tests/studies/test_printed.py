import pytest

from dissensus.studies import STUDIES
from dissensus.studies._printed import printed


@pytest.mark.parametrize(
    ("study", "place", "value"),
    [
        ("homophilic", {"model": "bimp", "dataset": "cora"}, 83.19),
        ("homophilic", {"model": "sage", "dataset": "computers"}, 76.42),
        ("homophilic", {"model": "grand++-aa-rw", "dataset": "pubmed"}, 79.44),
        ("heterophilic", {"model": "bimp", "dataset": "cornell-geomgcn2020"}, 77.13),
        ("heterophilic", {"model": "graphcon-gcn", "dataset": "texas"}, 80.54),
        ("heterophilic", {"model": "bimp-aa-rw", "dataset": "wisconsin"}, 86.22),
        ("heterophilic", {"model": "bimp", "dataset": "cornell"}, 77.13),
        ("heterophilic", {"model": "mlp", "dataset": "texas"}, None),
        ("large", {"model": "gat", "dataset": "ogbn-arxiv"}, 69.86),
        ("large", {"model": "gat", "dataset": "arxiv-synthetic"}, None),
        ("nonlinearity", {"dataset": "cora", "saturation": "gelu", "depth": 128}, 26.27),
        ("nonlinearity", {"dataset": "cora", "saturation": "tanh", "depth": 16}, 82.83),
        ("nonlinearity", {"dataset": "karate", "saturation": "tanh", "depth": 16}, None),
        ("runtime", {"model": "kuramoto", "dataset": "citeseer"}, 252.73),
        ("depth", {"model": "bimp", "dataset": "cora"}, None),
    ],
)
def test_printed_values(study, place, value):
    assert STUDIES[study].printed.get(place) == value


def test_every_printed_value_is_there():
    counts = {name: len(printed(name).means) for name in STUDIES}
    tables = {"homophilic": 16 * 6, "heterophilic": 16 * 3, "large": 5, "nonlinearity": 7 * 8, "runtime": 10}
    assert counts == dict.fromkeys(STUDIES, 0) | tables
    # A slip of the pen in one value would move its table's mean.
    assert round(sum(printed("homophilic").means.values()), 2) == 7892.73
    assert round(sum(printed("heterophilic").means.values()), 2) == 3467.84

"""Models ranked over datasets: Friedman's and Nemenyi's tests, and the critical-difference figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean

from dissensus.errors import InputError
from dissensus.report import LIGHT, drawing

_STEP = 0.24  # inches between names


@dataclass(frozen=True)
class Ranking:
    """Ranks of several models on the same datasets, 1 being the best; ties share the mean of their places.

    ``ranks`` has one number for each dataset. ``p`` is that of Friedman's test that all models are equal. By Nemenyi's
    test, two models differ where their average ranks do by more than ``critical = q sqrt(k (k + 1) / (6 n))``, with k
    models, n datasets and the quantile q of the studentized range, over the root of two.
    """

    datasets: list[str]
    ranks: dict[str, list[float]]
    p: float
    critical: float

    @property
    def averages(self) -> dict[str, float]:
        """The mean rank of each model, the best first."""
        means = {name: fmean(ranks) for name, ranks in self.ranks.items()}
        return dict(sorted(means.items(), key=lambda item: item[1]))


def rank(results: Mapping[str, Mapping[str, float]], level: float = 0.05) -> Ranking:
    """Rank models on the datasets that all of them have: ``results`` maps a model and a dataset to a score."""
    datasets = [name for name in next(iter(results.values()), {}) if all(name in row for row in results.values())]
    k, n = len(results), len(datasets)
    if k < 3 or n < 2:
        raise InputError(f"a ranking needs at least 3 models on 2 common datasets, got {k} on {n}")
    import numpy as np
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    scores = np.array([[row[name] for name in datasets] for row in results.values()])
    ranks = rankdata(-scores.round(12), axis=0)
    tied = bool((ranks == ranks[:1]).all())  # all models equal everywhere: the statistic is 0 / 0
    p = 1.0 if tied else float(friedmanchisquare(*scores.round(12)).pvalue)
    critical = float(studentized_range.ppf(1.0 - level, k, np.inf)) / sqrt(2.0) * sqrt(k * (k + 1) / (6.0 * n))
    return Ranking(datasets, dict(zip(results, ranks.tolist(), strict=True)), p, critical)


def draw_ranks(files: Sequence[Path], averages: Mapping[str, float], critical: float, title: str = "") -> None:
    """Draw average ranks on a line, the best on the left, with a bar over models that do not differ.

    Args:
        files: where to write it; the suffix (PNG, SVG) is the format.
        averages: the average rank of each model.
        critical: the critical difference of average ranks.
        title: shown above.
    """
    ordered = sorted(averages.items(), key=lambda item: item[1])
    ranks = [value for _, value in ordered]
    bars = undistinguished(ranks, critical)
    left = ceil(len(ordered) / 2)
    above, below = 0.75 + 0.12 * len(bars), 0.15 + _STEP * left
    with drawing(files, (7.0, above + below)) as figure:
        ax = figure.add_axes((0.22, 0.0, 0.56, 1.0))
        ax.set_xlim(1, len(ordered))
        ax.set_ylim(-below, above)
        ax.axis("off")
        ax.set_title(title, loc="left", fontsize=9, y=1.0, pad=-12, x=-0.37)
        ax.plot([1, len(ordered)], [0, 0], color=LIGHT["ink"], linewidth=0.8, clip_on=False)
        for tick in range(1, len(ordered) + 1):
            ax.plot([tick, tick], [0, 0.05], color=LIGHT["ink"], linewidth=0.8, clip_on=False)
            ax.text(tick, 0.08, str(tick), ha="center", va="bottom", fontsize=7.5, color=LIGHT["muted"])
        for level, (first, last) in enumerate(bars):
            height = 0.32 + 0.12 * level
            ax.plot([ranks[first], ranks[last]], [height] * 2, color=LIGHT["s0"], linewidth=3, clip_on=False)
        end = min(1.0 + critical, float(len(ordered)))
        top = above - 0.3
        ax.plot([1.0, end], [top, top], color=LIGHT["s1"], linewidth=1.5, clip_on=False)
        ax.text(end, top, f"  critical difference {critical:.2f}", va="center", fontsize=7.5, color=LIGHT["s1"])
        for place, (name, value) in enumerate(ordered):
            on_left = place < left
            height = -_STEP * (place + 1 if on_left else len(ordered) - place)
            x = 1 - 0.02 * len(ordered) if on_left else len(ordered) * 1.02
            ax.plot([value, value, x], [0, height, height], color=LIGHT["faint"], linewidth=0.8, clip_on=False)
            ax.text(x, height, f" {name}  {value:.2f} ", ha="right" if on_left else "left", va="center", clip_on=False)


def undistinguished(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """First and last place of each longest run of ascending ranks that lie within the critical difference."""
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(place for place, other in enumerate(ranks) if other - rank <= critical)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found

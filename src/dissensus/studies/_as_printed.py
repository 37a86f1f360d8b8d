"""The paper's models with the paper's settings, what its open choices change, and what each of our changes brings."""

from dataclasses import dataclass
from typing import Any

from dissensus.errors import InputError
from dissensus.runs import Record, RunConfig, key
from dissensus.studies._accuracy import accuracy_views, both_cornells
from dissensus.studies._printed import Printed, printed
from dissensus.studies._study import Request, Row, StudyRuns, Training, settings_key
from dissensus.studies._views import Details, Differences, Grid, Lines, Paired, View
from dissensus.train import read_preset, resolve

_TABLES = (printed("homophilic"), both_cornells())
# Small and large homophilic graphs and a heterophilic one.
_DATASETS = ("cora", "citeseer", "photo", "texas")

# The continuous models of the paper's accuracy tables.
CONTINUOUS = (
    *("bimp", "bimp-aa", "bimp-aa-rw", "grand-l", "grand-aa", "grand-aa-rw"),
    *("grand++-l", "grand++-aa", "grand++-aa-rw", "kuramoto", "graphcon-tran"),
)

UNCHANGED = "none"
# What the paper leaves open, one choice each. "other" is the encoder, linear or mlp, that is not printed.
READINGS: dict[str, dict[str, Any]] = {
    "tolerances 1e-5": {"model.rtol": 1e-5, "model.atol": 1e-5},
    "Euler steps of size 1": {"model.method": "euler", "model.step_size": 1.0},
    "A_o starts sharp": {"model.own_score": 8.0},
    "A_o = I": {"model.option_attention": "identity"},
    "solver time selected": {"train.select_time": True},
    "features of norm one": {"model.normalize_features": True},
    "the other encoder": {"model.encoder": "other"},
    "source detached": {"model.detach_source": True},
}
# What the preset tuned has changed, with the default of each setting, for presets that leave it out.
REVERTED: dict[str, dict[str, Any]] = {
    "alpha as printed": {"model.self_reinforcement": 1.0},
    "A_o as printed": {"model.option_attention": "gram", "model.own_score": 8.0},
    "attention at u*": {"model.attention_ratio": 1.0},
    "no unlabelled loss": {"train.consistency": None},
    "features as they are": {"model.normalize_features": False},
    "decoder as printed": {"model.decoder": "linear"},
    "attention score as printed": {"model.attention": "scaled_dot"},
    "solver as printed": {"model.method": "dopri5"},
}


# One part of the model taken out or made stronger or weaker, whatever the preset.
REMOVED: dict[str, dict[str, Any]] = {
    "linear": {"model.saturation": "linear"},
    "no gradient through the source": {"model.detach_source": True},
    "A_o = I": {"model.option_attention": "identity"},
    "A_o starts uniform": {"model.option_attention": "gram", "model.own_score": 0.0},
    **{f"{ratio} u*": {"model.attention_ratio": ratio} for ratio in (0.5, 0.75, 1.25, 1.5)},
    "damping 0.5": {"model.damping": 0.5},
    # An Euler step above 1/d would do more than decay.
    "damping 2.0": {"model.damping": 2.0, "model.step_size": 0.5},
}


def _reading(point: Row) -> dict[str, Any]:
    flags = dict(READINGS.get(point["change"], {}))
    if flags.get("model.encoder") == "other":
        kind = read_preset("paper", point["dataset"], point["model"])["model"].get("encoder", "linear")
        flags["model.encoder"] = "linear" if kind == "mlp" else "mlp"
    return flags


def _reverted(point: Row) -> dict[str, Any]:
    """What a change removes, or sets to the value of the preset paper; nothing where the preset has that value."""
    if point["change"] in REMOVED:
        return REMOVED[point["change"]]
    paper, tuned = (read_preset(name, point["dataset"], point["model"]) for name in ("paper", "tuned"))
    found = {}
    for path, default in REVERTED.get(point["change"], {}).items():
        section, name = path.split(".")
        before, after = (preset.get(section, {}).get(name, default) for preset in (tuned, paper))
        if before != after:
            found[path] = after
    return found


@dataclass(frozen=True, kw_only=True)
class AsPrinted(Training):
    """Runs only what the preset has settings for: anything else would not be as printed."""

    @property
    def printed(self) -> Printed:
        """Both accuracy tables as one."""
        return Printed(_TABLES[0].columns, {**_TABLES[0].means, **_TABLES[1].means})

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(name for name in super().takes if name != "preset")

    def plan(self, request: Request) -> StudyRuns:
        plan = super().plan(request)
        # By key, because a change that changes nothing gives the same run again.
        configs = {
            key(config): config
            for config in plan.configs
            if plan.presets[settings_key(self.unwrap(config))] == self.preset
        }
        if not configs:
            raise InputError(
                f"the preset {self.preset!r} has no settings for these models and datasets: choose among "
                f"{', '.join(self.models)} and {', '.join(self.datasets)}, BIMP's alone on heterophilic graphs"
            )
        return StudyRuns(
            list(configs.values()), {name: found for name, found in plan.presets.items() if found == self.preset}
        )


@dataclass(frozen=True, kw_only=True)
class Changes(AsPrinted):
    """One change at a time to the settings of a preset; its name is the column ``change``."""

    dimensions: tuple[str, ...] = ("dataset", "change")

    def rows(self, record: Record) -> list[Row]:
        config = self.unwrap(record.config)
        change = self._change(config)
        # Changes of the attention alone, and no change, are points of a curve over it.
        ratio = config["model"].get("attention_ratio", 1.0) if change == UNCHANGED or "u*" in change else None
        return [{**row, "change": change, "ratio": ratio} for row in super().rows(record)]

    def _change(self, config: RunConfig) -> str:
        """The first change whose settings these are."""
        point = {"dataset": config["data"]["name"], "model": config["model"]["name"]}
        for change in self.axes["change"]:
            # A quick look has other epochs, which are no change.
            flags = {**self.flags({**point, "change": change}), "train.epochs": config["train"]["epochs"]}
            resolved = resolve(point["dataset"], point["model"], preset=self.preset, flags=flags)
            if settings_key(resolved.as_dict()) == settings_key(config):
                return str(change)
        raise InputError(
            f"the study {self.name} has no change of the preset {self.preset!r} that gives these settings of "
            f"{point['model']} on {point['dataset']}: was the preset edited? Give another store with --store"
        )


ATTENTION = Lines(
    name="attention",
    title="Accuracy over the attention",
    facet="dataset",
    x="ratio",
    x_label="attention u relative to the critical one, u*",
    y_label="test accuracy (%)",
)


def change_views(title: str) -> tuple[View, ...]:
    return (
        Grid(name="accuracy", title=title, rows="change", best="", readme=True, shown=True),
        Differences(
            name="differences",
            title="The same, minus the unchanged settings on the same splits",
            rows="change",
            reference=UNCHANGED,
            readme=True,
            shown=True,
        ),
        Details(),
        Paired(title="Paired tests of the preset against each change", of="change", reference=UNCHANGED, shown=True),
    )


AS_PRINTED = AsPrinted(
    name="as-printed",
    title="Accuracy with the paper's settings",
    about=(
        "The preset paper: every setting that the paper prints, for the rivals those that GRAND's code publishes, and "
        "the package's defaults for what neither says. Test accuracy in per cent at the best validation accuracy. "
        "Models without published settings on a dataset are left out."
    ),
    preset="paper",
    models=CONTINUOUS,
    datasets=(*_TABLES[0].values("dataset"), *_TABLES[1].values("dataset")),
    quick_models=("bimp",),
    views=accuracy_views("Test accuracy with the paper's settings, in per cent"),
)

READING = Changes(
    name="readings",
    title="What the paper leaves open",
    about=(
        "BIMP with the preset paper, and one choice at a time that the paper leaves open made otherwise. All are "
        "reported, none is chosen by these splits."
    ),
    preset="paper",
    models=("bimp",),
    datasets=_DATASETS,
    axes={"change": (UNCHANGED, *READINGS)},
    quick_axes={"change": (UNCHANGED, "A_o = I")},
    quick_models=("bimp",),
    flags=_reading,
    views=change_views("Test accuracy of BIMP with the paper's settings and one open choice changed, in per cent"),
)

ABLATION = Changes(
    name="ablation",
    title="What each of our changes brings",
    about=(
        "BIMP with the preset tuned, and one of its changes at a time taken back to the preset paper, or one part of "
        "the model taken out; a dataset whose preset lacks a change has no number for it."
    ),
    preset="tuned",
    models=("bimp",),
    datasets=_DATASETS,
    axes={"change": (UNCHANGED, *REVERTED, *REMOVED)},
    quick_axes={"change": (UNCHANGED, "alpha as printed")},
    quick_models=("bimp",),
    flags=_reverted,
    views=(
        *change_views("Test accuracy of BIMP with the tuned settings and one change taken back, in per cent"),
        ATTENTION,
    ),
)

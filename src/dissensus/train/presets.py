"""Presets: settings by dataset and model, in TOML files.

``presets/NAME/DATASET.toml`` has the settings of preset NAME on DATASET, ``presets/default.toml`` those for any graph.
Each file is a list of tables; all models of a table share its settings::

    [[settings]]
    models = ["bimp"]
    note = "where they come from"
    [settings.model]
    heads = 4
    [settings.train]
    lr = 0.01
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dissensus.errors import InputError, one_of
from dissensus.files import atomic_write
from dissensus.train._config import SECTIONS, check_sections, located

ROOT = Path(__file__).resolve().parents[1] / "presets"
SPACES = ROOT / "spaces"
DEFAULT, NONE = "default", "none"

# section -> name -> value
Settings = dict[str, dict[str, Any]]


def preset_names() -> list[str]:
    """``default`` (for any graph), ``none``, and the presets that have files for single datasets."""
    return [DEFAULT, NONE, *sorted(folder.name for folder in ROOT.iterdir() if folder.is_dir() and folder != SPACES)]


def read_preset(preset: str, dataset: str, model: str) -> Settings:
    """The settings of a preset, by section.

    Args:
        preset: one of :func:`preset_names`, or the path of a ``.toml`` file in their layout.
        dataset: name of the dataset.
        model: name of the model. For a model without settings, ``default`` is empty and other presets raise an error.
    """
    if preset == NONE:
        return {}
    if preset.endswith(".toml"):
        path = Path(preset)
    elif preset == DEFAULT:
        path = ROOT / "default.toml"
    else:
        one_of("preset", preset, preset_names())
        path = ROOT / preset / f"{dataset}.toml"
        if not path.is_file():
            known = ", ".join(sorted(file.stem for file in path.parent.glob("*.toml")))
            raise InputError(
                f"the preset {preset!r} has no settings for {dataset}, only for: {known}; use --preset default"
            )
    entries = read_settings(path)
    found = next((entry for entry in entries if located(model) in map(located, entry["models"])), None)
    if found is None:
        if preset == DEFAULT:
            return {}
        known = ", ".join(name for entry in entries for name in entry["models"])
        raise InputError(
            f"the preset {preset!r} has no settings for the model {model} on {dataset}, only for: {known}; "
            "use --preset default"
        )
    return {section: dict(found[section]) for section in SECTIONS if section in found}


def read_settings(path: Path) -> list[dict[str, Any]]:
    """The tables of a preset's file. Raises an error for invalid ones, and for a model in two of them."""
    content = read_toml(path)
    entries = content.get("settings")
    if list(content) != ["settings"] or not isinstance(entries, list):
        raise InputError(
            f"{path}: a preset consists of tables that start with a line [[settings]], and of nothing else"
        )
    seen: set[str] = set()
    for entry in entries:
        for key in entry:
            one_of(f"key in {path}", key, ["models", "note", *SECTIONS])
        models = entry.get("models")
        if not isinstance(models, list) or not models or not all(isinstance(name, str) for name in models):
            raise InputError(
                f'{path}: each [[settings]] needs models = ["..."], the list of models with these settings'
            )
        if again := seen.intersection(models):
            raise InputError(f"{path}: {min(again)} is in two [[settings]]: keep it in one of them")
        seen.update(models)
        check_sections({key: value for key, value in entry.items() if key in SECTIONS})
    return entries


def write_settings(path: Path, models: Sequence[str], note: str, layer: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the common settings of some models to a preset's file, instead of the settings it had for these models."""
    import tomli_w

    entries = read_settings(path) if path.is_file() else []
    kept = [{**entry, "models": [name for name in entry["models"] if name not in models]} for entry in entries]
    new = {"models": list(models), "note": note, **layer}
    path.parent.mkdir(parents=True, exist_ok=True)
    tables = [{key: value for key, value in entry.items() if value} for entry in (*kept, new) if entry["models"]]
    with atomic_write(path) as temporary:
        temporary.write_text(tomli_w.dumps({"settings": tables}), encoding="utf-8")


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises an error with the path and the reason if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML, correct it: {error}") from error

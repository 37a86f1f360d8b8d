"""The paper's presets against the two hyperparameter tables, copied here a second time, row by row as printed."""

import pytest

from dissensus.errors import InputError
from dissensus.train import preset_names, read_preset, resolve
from dissensus.train.presets import ROOT, SPACES, read_settings, write_settings

DATASETS = (
    "cora",
    "citeseer",
    "pubmed",
    "coauthor-cs",
    "computers",
    "photo",
    "texas",
    "wisconsin",
    "cornell-geomgcn2020",
)
ROWS = {
    "opinion dim": (80, 128, 128, 16, 128, 64, 256, 32, 32),
    "epoch": (100, 250, 600, 250, 100, 100, 200, 100, 100),
    "learning rate": (0.0178, 0.0034, 0.0210, 0.0018, 0.0035, 0.0056, 0.0178, 0.0178, 0.0218),
    "optimizer": ("AdaMax", "AdaMax", "AdaMax", "RMSProp", "Adam", "Adam", "AdaMax", "AdaMax", "AdaMax"),
    "weight decay": (0.0078, 0.1, 0.0020, 0.0047, 0.0077, 0.0047, 0.0078, 0.0091, 0.0478),
    "dropout": (0.1353, 0.3339, 0.0932, 0.6858, 0.0873, 0.4650, 0.6531, 0.2528, 0.2030),
    "input dropout": (0.4172, 0.5586, 0.6106, 0.5275, 0.5973, 0.4290, 0.0052, 0.0042, 0.0417),
    "attention head": (4, 2, 1, 4, 4, 4, 8, 4, 4),
    "attention dim": (16, 8, 16, 8, 64, 64, 32, 16, 16),
    "attention type": ("Scaled Dot", "Exp. Kernel", "Cosine Sim.", *["Scaled Dot"] * 2, "Pearson", *["Scaled Dot"] * 3),
    "adjoint": (False, False, True, True, True, True, False, False, False),
    "adjoint method": (None, None, "Euler", "dopri5", "dopri5", "dopri5", None, None, None),
    "linear encoder": (True, True, False, True, True, False, False, False, False),
    "linear decoder": (True, True, True, True, True, True, True, False, False),
    "time": (12.2695, 6.6067, 9.7257, 4.0393, 3.2490, 2.0281, 0.01, 0.01, 0.01),
    "damping": (0.8952, 1.0970, 0.6908, 0.1925, 1.0269, 1.0230, 0.0086, 0.0075, 0.0195),
    "self-reinforce": (1, 1, 1, 1, 1, 1, 2, 2, 1.5),
}
KINDS = {"Scaled Dot": "scaled_dot", "Exp. Kernel": "exp_kernel", "Cosine Sim.": "cosine", "Pearson": "pearson"}


@pytest.mark.parametrize("dataset", DATASETS)
def test_bimp_has_the_settings_of_the_paper(dataset):
    row = {name: values[DATASETS.index(dataset)] for name, values in ROWS.items()}
    expected = {
        "model": {
            "hidden_channels": row["opinion dim"],
            "heads": row["attention head"],
            "attention_channels": row["attention dim"],
            "attention": KINDS[row["attention type"]],
            "option_attention": "node",
            "own_score": 0.0,
            "damping": row["damping"],
            "self_reinforcement": row["self-reinforce"],
            "time": row["time"],
            "method": "dopri5",
            "step_size": 1,
            "gradient": "adjoint" if row["adjoint"] else "discrete",
            "encoder": "linear" if row["linear encoder"] else "mlp",
            "decoder": "linear" if row["linear decoder"] else "mlp",
            "dropout": row["dropout"],
            "input_dropout": row["input dropout"],
        },
        "train": {
            "epochs": row["epoch"],
            "optimizer": row["optimizer"].lower(),
            "lr": row["learning rate"],
            "weight_decay": row["weight decay"],
        },
    }
    if row["adjoint"]:
        expected["model"] |= {"adjoint_method": row["adjoint method"].lower(), "adjoint_step_size": 1}
    assert read_preset("paper", dataset, "bimp") == expected


# T, width, heads, their width, kind, tolerance scale, optimiser, rate, decay, input dropout, dropout, epochs
GRAND = {
    "cora": (18.295, 80, 8, 128, "scaled_dot", 822, "adamax", 0.0229, 0.00508, 0.5, 0.047, 100),
    "citeseer": (7.874, 80, 8, 32, "exp_kernel", 2.9, "adam", 0.00864, 0.1, 0.68, 0.749, 250),
    "pubmed": (12.942, 128, 1, 16, "cosine", 1991, "adamax", 0.0147, 0.00182, 0.5, 0.072, 600),
    "coauthor-cs": (3.126, 16, 4, 8, "scaled_dot", 9349, "rmsprop", 0.00093, 0.0047, 0.53, 0.686, 250),
    "computers": (3.249, 128, 4, 64, "scaled_dot", 127, "adam", 0.00353, 0.0077, 0.6, 0.087, 100),
    "photo": (3.582, 64, 4, 64, "pearson", 2087, "adam", 0.00556, 0.0047, 0.43, 0.465, 100),
    "ogbn-arxiv": (3.676, 162, 2, 32, "scaled_dot", 11354, "rmsprop", 0.00545, 0, 0, 0.116, 100),
}


@pytest.mark.parametrize("dataset", GRAND)
def test_grand_has_its_published_settings(dataset):
    time, width, heads, keys, kind, scale, optimizer, lr, decay, input_dropout, dropout, epochs = GRAND[dataset]
    for model in ("grand-l", "grand-aa-rw", "grand++-aa", "kuramoto", "graphcon-tran"):
        found = read_preset("paper", dataset, model)
        options = found["model"]
        assert (options["time"], options["hidden_channels"], options["heads"]) == (time, width, heads)
        assert (options["attention_channels"], options["attention"], options["method"]) == (keys, kind, "dopri5")
        assert (options["input_dropout"], options["dropout"]) == (input_dropout, dropout)
        assert (options["atol"], options["rtol"]) == (pytest.approx(scale * 1e-7), pytest.approx(scale * 1e-9))
        squareplus = dataset in ("cora", "citeseer", "pubmed", "coauthor-cs")
        assert options["normalizer"] == ("squareplus" if squareplus else "softmax")
        assert found["train"] == {"epochs": epochs, "optimizer": optimizer, "lr": lr, "weight_decay": decay}
    assert read_preset("paper", dataset, "grand-l")["model"]["source"] is (dataset in ("cora", "citeseer", "pubmed"))


def test_both_cornells_have_the_same():
    assert read_preset("paper", "cornell", "bimp") == read_preset("paper", "cornell-geomgcn2020", "bimp")


@pytest.mark.slow
def test_every_preset_makes_a_model():
    from dissensus.data import names

    files = sorted(file for file in ROOT.glob("*/*.toml") if file.parent.name != "spaces")
    assert len(files) >= 12
    for file in [*files, ROOT / "default.toml"]:
        dataset = "karate" if file.stem == "default" else file.stem
        assert dataset in names()
        for entry in read_settings(file):
            for model in entry["models"]:
                resolve(dataset, model, preset=str(file)).check()


def test_a_preset_is_not_changed_by_what_is_put_over_it():
    before = read_preset("paper", "cora", "bimp")
    resolve("cora", preset="paper", flags={"model.heads": 8})
    assert read_preset("paper", "cora", "bimp") == before


def test_presets_that_do_not_exist_say_which_do(tmp_path):
    assert preset_names()[:2] == ["default", "none"]
    assert {"paper", "tuned"} <= set(preset_names())
    with pytest.raises(InputError, match="did you mean 'paper'"):
        resolve("cora", preset="papre")
    with pytest.raises(InputError, match=r"no settings for karate, only for: .*cora"):
        resolve("karate", preset="paper")
    with pytest.raises(InputError, match="no settings for the model gcn on texas, only for: bimp"):
        resolve("texas", "gcn", preset="paper")
    assert read_preset("default", "karate", "gcn") == {}
    with pytest.raises(InputError, match="cannot be read"):
        resolve("karate", preset=str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr = 1", "consists of tables"),
        ("[[settings]]\n[settings.model]\nheads = 1", "needs models"),
        ('[[settings]]\nmodels = "bimp"', "needs models"),
        ('[[settings]]\nmodels = ["bimp"]\n[[settings]]\nmodels = ["bimp"]', "two"),
        ('[[settings]]\nmodels = ["bimp"]\nmodell = 3', "unknown key"),
    ],
)
def test_wrong_preset_files_are_refused(tmp_path, text, message):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        resolve("karate", preset=str(path))


def test_a_written_preset_is_read_again(tmp_path):
    path = tmp_path / "mine" / "karate.toml"
    first = {"model": {"heads": 2, "attention": 'a "b"\n\\é', "adaptive": True}, "train": {"lr": 1e-05}}
    write_settings(path, ["bimp", "bimp-aa"], "one", first)
    write_settings(path, ["gcn"], "two", {"train": {"epochs": 3}})
    write_settings(path, ["bimp"], "three", first | {"train": {"lr": 0.25}})
    assert [(entry["models"], entry["note"]) for entry in read_settings(path)] == [
        (["bimp-aa"], "one"),
        (["gcn"], "two"),
        (["bimp"], "three"),
    ]
    assert read_preset(str(path), "karate", "bimp") == first | {"train": {"lr": 0.25}}
    assert resolve("karate", "gcn", preset=str(path)).train.epochs == 3


def test_every_preset_is_the_same_after_it_is_written_anew(tmp_path):
    path = tmp_path / "p.toml"
    for file in sorted(set(ROOT.rglob("*.toml")) - set(SPACES.glob("*.toml"))):
        path.unlink(missing_ok=True)
        entries = read_settings(file)
        for entry in entries:
            sections = {name: values for name, values in entry.items() if name not in ("models", "note")}
            write_settings(path, entry["models"], entry.get("note", ""), sections)
        assert read_settings(path) == entries

"""One configuration over several splits and seeds, without a command."""

import pytest
import torch
from safetensors.torch import load_file

from dissensus import runs, train
from dissensus.errors import DissensusError, InputError, TrainingError


@pytest.fixture
def config():
    return train.resolve(
        "karate", "gcn", preset="none", flags={"train.epochs": 2, "model.hidden_channels": 4, "model.num_layers": 2}
    )


def failing(monkeypatch, *splits):
    """Runs of these splits fail; all others are made as they are."""
    made = train.run

    def run(config, **options):
        if config.data.split in splits:
            raise TrainingError("diverged")
        return made(config, **options)

    monkeypatch.setattr(train, "run", run)


@pytest.mark.slow
def test_every_split_and_seed_is_run_and_the_best_on_validation_is_kept(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended, epochs = [], []
    found = runs.repeat(
        config,
        splits=[2, 1],
        seeds=[5, 6],
        on_run=lambda attempt, total: ended.append((attempt.result["split"], attempt.result["seed"], total)),
        on_epoch=lambda one, now: epochs.append((one.data.split, one.train.seed, now.number)),
    )
    assert ended == [(2, 5, 4), (2, 6, 4), (1, 5, 4), (1, 6, 4)]
    assert epochs == [(split, seed, number) for split, seed, _ in ended for number in (1, 2)]
    assert [(run["split"], run["seed"]) for run in found.results] == [(1, 5), (1, 6), (2, 5), (2, 6)]
    # Of equal validation, the first split and seed.
    best = min(found.results, key=lambda run: (-run["val"], run["split"], run["seed"]))
    assert (found.best.config.data.split, found.best.config.train.seed) == (best["split"], best["seed"])
    assert (found.best.val, found.best.test) == (best["val"], best["test"])
    answer, tests = found.as_dict(), torch.tensor([run["test"] for run in found.results], dtype=torch.float64)
    assert answer["test_mean"] == pytest.approx(float(tests.mean()))
    assert answer["test_std"] == pytest.approx(float(tests.std()))
    assert "split" not in answer["config"]["data"]
    assert list(tmp_path.iterdir()) == []


def test_a_single_run_has_no_spread(config):
    answer = runs.repeat(config, splits=[1]).as_dict()
    assert (answer["test_std"], answer["test_interval"], answer["seeds"]) == (0.0, None, [config.train.seed])


def test_a_failed_run_is_told_and_the_others_count(config, monkeypatch):
    failing(monkeypatch, 2)
    found = runs.repeat(config, splits=[1, 2, 3])
    assert [run["split"] for run in found.results] == [1, 3]
    (error,) = found.as_dict()["errors"]
    assert (error["split"], "diverged" in error["error"]) == (2, True)
    failing(monkeypatch, 1)
    with pytest.raises(DissensusError, match=r"all 1 runs failed; the first: .*diverged"):
        runs.repeat(config, splits=[1])


def test_an_interrupt_keeps_what_is_finished(config):
    def stop(attempt, total):
        raise KeyboardInterrupt

    found = runs.repeat(config, splits=[1, 2], on_run=stop)
    assert found.interrupted
    assert [run["split"] for run in found.results] == [1]

    def stop_at_once(one, now):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runs.repeat(config, splits=[1, 2], on_epoch=stop_at_once)


@pytest.mark.slow
def test_finished_runs_come_from_the_store_and_their_model_is_made_again(config, tmp_path):
    first = runs.repeat(config, splits=[1, 2], store=tmp_path / "runs.db")
    again = runs.repeat(config, splits=[1, 2], store=tmp_path / "runs.db")
    assert again.results == first.results
    assert again.best is None
    made, kept = again.save(tmp_path / "model"), first.save(tmp_path / "same")
    assert {**made, "folder": ""} == {**kept, "folder": ""}
    one, other = (load_file(tmp_path / name / "model.safetensors") for name in ("model", "same"))
    assert all(torch.equal(one[name], other[name]) for name in one | other)


@pytest.mark.slow
def test_a_model_made_here_gives_way_to_a_better_one_of_the_store(config, tmp_path):
    both = runs.repeat(config, splits=[1, 2])
    best = both.best.config.data.split
    runs.repeat(config, splits=[best], store=tmp_path / "runs.db")
    mixed = runs.repeat(config, splits=[1, 2], store=tmp_path / "runs.db")
    assert mixed.best is None
    assert mixed.save(tmp_path / "model")["split"] == best


def test_epochs_of_other_processes_cannot_be_logged(config):
    with pytest.raises(InputError, match="--executor inline"):
        runs.repeat(config, executor="processes", log="tensorboard:logs")

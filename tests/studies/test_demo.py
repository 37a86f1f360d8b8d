"""The demonstration shows what it says: where features are few depth is needed, and there BIMP gains from it."""

import pytest

from dissensus.cli import main
from dissensus.errors import InputError
from dissensus.studies import _demo, demo


@pytest.mark.slow
def test_depth_pays_where_features_are_few_and_a_deep_gcn_collapses():
    found = demo(depths=(2, 32), splits=(1,), epochs=25)
    (full, few) = _demo.TASKS

    def one(task, model, depth=None):
        (outcome,) = found.of(task, model, depth)
        return outcome

    assert one(full, "gcn", 2).accuracy > 90
    assert one(full, "gcn", 32).accuracy < 50
    assert one(full, "bimp", 32).accuracy > 85
    assert one(few, "bimp", 32).accuracy > one(few, "gcn", 2).accuracy
    assert one(few, "bimp", 32).accuracy > one(few, "bimp", 2).accuracy + 5
    # Label propagation sees no features, so that it does not matter where they are known.
    assert one(full, "label-propagation").accuracy == one(few, "label-propagation").accuracy > 90
    gcn, bimp = one(few, "gcn", 32), one(few, "bimp", 32)
    assert gcn.ranks[-1] < 2 < 8 < bimp.ranks[-1]
    assert bimp.layers == (1, 2, 4, 8, 16, 32)
    assert len(found.table().rows) == 4


@pytest.mark.slow
def test_no_epochs_is_refused(capsys):
    assert main(["demo", "--epochs", "0"]) == 1
    assert "at least 1" in capsys.readouterr().err
    with pytest.raises(InputError, match="at least one each"):
        demo(splits=())

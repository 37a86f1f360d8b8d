import pytest

from dissensus import runs
from dissensus.runs import Store, _claims


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


def test_a_driver_on_another_machine_is_given_up_when_its_heart_stops(path, monkeypatch):
    with Store(path) as store:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(_claims, "place", lambda: "another machine")
            far = _claims.Owner()
        here = _claims.Owner()
        clock = 1000.0
        monkeypatch.setattr(_claims.time, "monotonic", lambda: clock)
        with store._transaction() as connection:
            assert far.claim(connection, "k")
            assert not here.claim(connection, "k")
            clock += _claims.LEASE - 1
            assert not here.claim(connection, "k")
            far.beat(connection)
            clock += _claims.LEASE - 1
            assert not here.claim(connection, "k")
            clock += _claims.LEASE + 1
            assert here.claim(connection, "k")
            assert not far.claim(connection, "k")


@pytest.mark.slow
def test_the_heart_beats_while_a_run_is_under_way(path, monkeypatch):
    monkeypatch.setattr(_claims, "BEAT", 0.05)
    beats = []
    beat = _claims.Owner.beat
    monkeypatch.setattr(_claims.Owner, "beat", lambda self, connection: (beat(self, connection), beats.append(1)))
    runs.execute([{"x": 1, "nap": 0.5}], "runs_targets:square", store=path)
    assert len(beats) > 2


def test_a_claim_that_an_earlier_call_left_behind_does_not_block(path):
    with Store(path) as store:
        gone, here = _claims.Owner(), _claims.Owner()
        with store._transaction() as connection:
            assert gone.claim(connection, "k")
            assert not here.claim(connection, "k")
            gone.retire()
            assert here.claim(connection, "k")

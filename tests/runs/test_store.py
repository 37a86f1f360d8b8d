"""The store: what goes in comes out, and damage is found and said."""

import math
import os
import shutil
import sqlite3
import subprocess
import threading
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissensus import runs
from dissensus.errors import InputError
from dissensus.runs import Store, StoreError
from runs_records import record


def test_what_is_put_is_got(tmp_path):
    done = record({"x": 1}, {"test": 0.8, "curve": [0.1, float("inf")], "note": "ü"})
    failed = record({"x": 2}, error="ValueError: \udc80 not text")
    with Store(tmp_path / "new" / "runs.db") as store:
        store.put(done)
        store.put(failed)
    with Store(tmp_path / "new" / "runs.db") as store:
        assert store.get(done.key) == done
        assert store.get(failed.key).status == "failed"
        assert store.get(failed.key).error == r"ValueError: \udc80 not text"
        assert store.get("0" * 64) is None
        assert len(store) == 2


def test_nan_in_a_result_comes_back(tmp_path):
    with Store(tmp_path / "runs.db") as store:
        store.put(record({"x": 1}, {"test": math.nan}))
        assert math.isnan(store.query()[0].result["test"])


def test_a_run_that_is_done_stays_and_a_failed_one_is_replaced(tmp_path):
    with Store(tmp_path / "runs.db") as store:
        store.put(record({"x": 1}, error="first"))
        store.put(record({"x": 1}, error="second"))
        assert store.query()[0].error == "second"
        store.put(record({"x": 1}, {"test": 1}))
        store.put(record({"x": 1}, {"test": 2}))
        store.put(record({"x": 1}, error="late"))
        assert [stored.result for stored in store.query()] == [{"test": 1}]


def test_missing_counts_each_configuration_once(tmp_path):
    with Store(tmp_path / "runs.db") as store:
        store.put(record({"x": 1}, {"test": 1}))
        store.put(record({"x": 2}, error="oops"))
        configs = [{"x": 1.0}, {"x": 2}, {"x": 3}, {"x": 3.0}]
        assert [config["x"] for config in store.missing(configs)] == [3]
        assert [config["x"] for config in store.missing(configs, retry_failed=True)] == [2, 3]


def test_query_filters_by_dotted_paths_and_status(full):
    with Store(full) as store:
        store.put(record({"x": 1, "model": {"name": "gcn", "adaptive": True}}, error="oops"))
        assert len(store.query()) == 301
        assert [found.config["model"]["name"] for found in store.query({"x": 1.0})] == ["bimp", "gcn"]
        assert len(store.query({"model.name": "bimp", "x": 7}, status="done")) == 1
        assert len(store.query({"model": {"name": "bimp"}})) == 300
        assert [found.error for found in store.query(status="failed")] == ["oops"]
        assert store.query({"x": "1"}) == []
        assert store.query({"model.adaptive": 1}) == []
        with pytest.raises(InputError, match=r"'modle.name': did you mean 'model.name'"):
            store.query({"modle.name": "bimp"})
        with pytest.raises(InputError, match="unknown status 'finished'"):
            store.query(status="finished")


@pytest.mark.slow
def test_threads_share_a_store(tmp_path):
    with Store(tmp_path / "runs.db") as store:
        threads = [
            threading.Thread(target=lambda part=part: [store.put(record({"x": x}, {})) for x in range(part, 40, 4)])
            for part in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(store) == 40


def test_opening_without_creating(tmp_path):
    with pytest.raises(InputError, match="no store of runs here"):
        Store(tmp_path / "absent.db", create=False)
    assert not (tmp_path / "absent.db").exists()
    with pytest.raises(InputError, match="directory"):
        Store(tmp_path)


def test_files_of_another_kind_are_refused_and_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("these are my notes, and not a store at all\n" * 50)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for path, message in [(text, "not a store of runs"), (other, "not a store of runs; give another path")]:
        before = path.read_bytes()
        with pytest.raises(StoreError, match=message):
            Store(path)
        assert path.read_bytes() == before


def test_a_store_of_another_version_is_refused_with_the_cure(full):
    connection = sqlite3.connect(full)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = full.read_bytes()
    with pytest.raises(StoreError, match=r"version 99 .* open it with the package that wrote it"):
        Store(full)
    assert full.read_bytes() == before


def _overwrite(path, start, data):
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def test_a_damaged_page_is_detected_and_the_rest_recovered(full, tmp_path):
    size = full.stat().st_size
    _overwrite(full, size // 2 // 4096 * 4096, os.urandom(3 * 4096))
    before = full.read_bytes()
    with pytest.raises(StoreError, match=r"damaged .*--recover NEW\.db"), Store(full) as store:
        store.query()
    assert full.read_bytes() == before
    count = Store.recover(full, tmp_path / "good.db")
    assert full.read_bytes() == before
    assert 200 < count < 300
    with Store(tmp_path / "good.db") as store:
        assert len(store) == count
        assert all(found.result["curve"] == [found.config["x"]] * 50 for found in store.query())


def test_a_truncated_store_is_detected_and_the_rest_recovered(full, tmp_path):
    os.truncate(full, full.stat().st_size // 2)
    with pytest.raises(StoreError, match="damaged"):
        Store(full)
    assert Store.recover(full, tmp_path / "good.db") > 50


def test_one_changed_letter_in_a_result_is_detected(full, tmp_path):
    content = full.read_bytes()
    place = content.index(b'"curve":[123,123')
    _overwrite(full, place + 10, b"9")
    with Store(full) as store:
        assert store.get(runs.key({"x": 5, "model": {"name": "bimp"}})).result["curve"][0] == 5
        with pytest.raises(StoreError, match="does not match its checksum"):
            store.query()
    assert Store.recover(full, tmp_path / "good.db") == 299


def test_bytes_that_are_no_text_are_detected(full):
    _overwrite(full, full.read_bytes().index(b'"curve":[123,123') + 10, b"\xff")
    with Store(full) as store, pytest.raises(StoreError, match="damaged"):
        store.query()


def test_recovery_refuses_what_it_cannot_do(full, tmp_path):
    with pytest.raises(InputError, match="exists already"):
        Store.recover(full, full)
    with pytest.raises(InputError, match="no file to recover"):
        Store.recover(tmp_path / "absent.db", tmp_path / "good.db")
    noise = tmp_path / "noise.db"
    noise.write_bytes(b"noise" * 5000)
    with pytest.raises(StoreError, match="backup"):
        Store.recover(noise, tmp_path / "good.db")
    assert not (tmp_path / "good.db").exists()


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_damage_gives_right_records_or_a_store_error(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "runs.db"
    with Store(path) as store, store._transaction():
        for x in range(30):
            store.put(record({"x": x}, {"square": x * x}))
    size = path.stat().st_size
    if data.draw(st.booleans(), label="truncate"):
        os.truncate(path, data.draw(st.integers(1, size - 1)))
    else:
        start = data.draw(st.integers(0, size - 1))
        _overwrite(path, start, data.draw(st.binary(min_size=1, max_size=200))[: size - start])
    try:
        with Store(path) as store:
            found = store.query()
    except StoreError:
        pass
    else:
        assert all(entry.result == {"square": entry.config["x"] ** 2} for entry in found)
    shutil.rmtree(folder)


def test_a_damaged_schema_that_is_no_text_is_a_store_error(tmp_path):
    path = tmp_path / "runs.db"
    with Store(path) as store:
        store.put(record({"x": 1}, {"square": 1}))
    refused = 0
    for start in range(3900, 4080, 7):  # in the text of the schema, on the first page
        damaged = tmp_path / f"{start}.db"
        shutil.copy(path, damaged)
        _overwrite(damaged, start, b"\x80")
        try:
            with Store(damaged) as store:
                assert store.query()[0].result == {"square": 1}
        except StoreError:
            refused += 1
    assert refused


@pytest.fixture
def small_disk(tmp_path):
    """A filesystem of 512 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small tmpfs takes root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_no_result(small_disk):
    configs = runs.grid({}, {"x": range(12)})
    with Store(small_disk / "runs.db") as store:
        with pytest.raises(StoreError, match=r"the disk is full.*1 finished runs could not be stored") as caught:
            runs.execute(configs, "runs_targets:bulky", store=store)
        assert [unsaved.result for unsaved in caught.value.unsaved] == [{"text": "x" * 100_000}]
        kept = store.query()
    assert 1 <= len(kept) <= 5
    # On the full disk the store can still be opened, read and told from a damaged one.
    with Store(small_disk / "runs.db") as store:
        assert store.query() == kept
    assert [path.name for path in small_disk.iterdir()] == ["runs.db"]

    subprocess.run(["mount", "-o", "remount,size=8m", str(small_disk)], check=True)
    summary = runs.execute(configs, "runs_targets:bulky", store=small_disk / "runs.db")
    assert (summary.here, summary.found, summary.failed) == (12 - len(kept), len(kept), 0)


@pytest.mark.slow
def test_runs_under_way_are_awaited_and_stored_if_room_was_made_meanwhile(small_disk):
    ballast = small_disk / "ballast"
    finished = []

    def fill_the_disk_for_a_while(found):
        finished.append(found.config["x"])
        if len(finished) > 1:
            return
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        threading.Timer(0.3, ballast.unlink).start()

    # With two workers the long run 0 is under way when the disk fills up after run 1.
    configs = [{"x": 0, "nap": 1.0}, *runs.grid({}, {"x": [1, 2, 3, 4]})]
    options = {"store": small_disk / "runs.db", "executor": "processes", "workers": 2}
    with pytest.raises(StoreError, match="disk is full") as caught:
        runs.execute(configs, "runs_targets:square", on_result=fill_the_disk_for_a_while, **options)
    assert caught.value.unsaved == ()
    assert {0, 1} <= set(finished) < {0, 1, 2, 3, 4}
    summary = runs.execute(configs, "runs_targets:square", **options)
    assert (summary.found, summary.here) == (len(finished), 5 - len(finished))


def test_a_file_size_limit_is_said_as_such(tmp_path):
    resource = pytest.importorskip("resource", reason="limits of this kind are POSIX")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store(tmp_path / "runs.db") as store:
        store.put(record({"x": 1}, {}))
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
        try:
            with pytest.raises(StoreError, match="full, over quota or failing"):
                store.put(record({"x": 2}, {"text": "x" * 300_000}))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert [found.config["x"] for found in store.query()] == [1]


def test_a_store_that_may_not_be_written_says_so(full):
    with Store(full) as store:
        store._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError, match="permissions"):
            store.put(record({"x": 1000}, {}))


def test_a_store_locked_by_another_process_says_so(full, monkeypatch):
    monkeypatch.setattr("dissensus.runs._store._TIMEOUT", 0.1)
    other = sqlite3.connect(full, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked"):
        Store(full)
    other.close()


def test_a_store_in_memory_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store(":memory:") as store:
        store.put(record({"x": 1}, {}))
        assert len(store) == 1
    assert list(tmp_path.iterdir()) == []

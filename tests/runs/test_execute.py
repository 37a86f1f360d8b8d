"""The driver: only what is missing, never twice, whatever dies."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from dissensus import runs
from dissensus.errors import InputError
from dissensus.runs import Store, _claims

SCRIPT = Path(__file__).parents[1] / "support" / "runs_targets.py"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


def _starts(log):
    """Which x were started, in order."""
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_grid_is_run_once_and_only_what_is_missing_after_that(executor, path, tmp_path):
    log = tmp_path / "log"
    configs = runs.grid({"log": str(log)}, {"x": range(6)})
    seen = []
    options = {"store": path, "executor": executor, "on_result": lambda found: seen.append(found.config["x"])}
    first = runs.execute(configs[:4], "runs_targets:square", **options)
    assert (first.here, first.found, first.elsewhere, first.failed) == (4, 0, 0, 0)
    again = runs.execute([*configs, configs[0]], "runs_targets:square", **options)
    assert (again.here, again.found) == (2, 4)
    assert [found.result["square"] for found in again.records] == [0, 1, 4, 9, 16, 25, 0]
    assert sorted(_starts(log)) == sorted(seen) == list(range(6))
    assert str(again).startswith("7 runs: 2 executed, 4 found, ")
    assert {found.result["pid"] == os.getpid() for found in again.records} == {executor == "inline"}
    assert path.exists()


def test_without_a_store_results_are_returned():
    summary = runs.execute(runs.grid({}, {"x": range(3)}), "runs_targets:square")
    assert [found.result["square"] for found in summary.records] == [0, 1, 4]


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_failed_run_is_recorded_and_does_not_stop_the_rest(executor, path):
    configs = runs.grid({}, {"x": range(4)})
    summary = runs.execute(configs, "runs_targets:fail_on_odd", store=path, executor=executor)
    assert [found.status for found in summary.records] == ["done", "failed", "done", "failed"]
    assert summary.failed == 2
    failed = summary.records[1]
    assert failed.error == "ValueError: 1 is odd"
    assert "fail_on_odd" in failed.traceback
    assert failed.result is None
    assert failed.provenance["dissensus"]
    assert runs.execute(configs, "runs_targets:fail_on_odd", store=path).here == 0
    retried = runs.execute(configs, "runs_targets:fail_on_odd", store=path, retry_failed=True)
    assert (retried.here, retried.found, retried.failed) == (2, 2, 2)


def test_a_result_that_cannot_be_stored_is_a_failure():
    summary = runs.execute(runs.grid({}, {"x": [0, 1]}), "runs_targets:give")
    assert "must return a dictionary" in summary.records[0].error
    assert "the result.object is of type object" in summary.records[1].error


@pytest.mark.slow
def test_a_worker_that_dies_costs_only_its_run(path):
    configs = runs.grid({}, {"x": range(6)})
    summary = runs.execute(configs, "runs_targets:die_on_odd", store=path, executor="processes", workers=2)
    assert [found.status for found in summary.records] == ["done", "failed"] * 3
    assert "SIGKILL" in summary.records[1].error
    assert "out of memory" in summary.records[1].error


def test_a_worker_that_dies_once_costs_nothing(path, tmp_path):
    configs = [{"x": 1, "once": str(tmp_path / "once")}, {"x": 2}]
    summary = runs.execute(configs, "runs_targets:die_on_odd", store=path, executor="processes", workers=1)
    assert [found.result["square"] for found in summary.records] == [1, 4]


def test_threads_of_workers_share_the_cores(path, capfd):
    options = {"store": path, "executor": "processes", "workers": 1}
    summary = runs.execute([{"x": 1}], "runs_targets:threads", threads=3, **options)
    assert summary.records[0].result == {"omp": "3", "mkl": "3", "read": ""}
    summary = runs.execute([{"x": 2}], "runs_targets:threads", **options)
    assert summary.records[0].result["omp"] == str(len(os.sched_getaffinity(0)))
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "a target may print" in printed.err


def test_an_interrupt_keeps_what_is_done_and_gives_back_the_rest(path):
    configs = runs.grid({}, {"x": range(4)})
    with pytest.raises(KeyboardInterrupt):
        runs.execute(configs, "runs_targets:interrupt", store=path)
    with Store(path) as store:
        assert [found.config["x"] for found in store.query()] == [0, 1]
        assert store._rows("SELECT * FROM claims") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "threads"}, "unknown executor 'threads'"),
        ({"executor": "processes", "workers": 0}, "workers must be at least 1"),
        ({"threads": -1}, "threads must be at least 1"),
        ({"workers": 2}, "one run at a time"),
        ({"address": "127.0.0.1:6379"}, "address is for the executor 'ray'"),
        ({"target": "runs_targets"}, "write it as 'module:function'"),
        ({"target": "runs_targets:absent"}, "cannot be imported"),
        ({"target": "absent_module:square"}, "No module named 'absent_module'"),
        ({"target": "runs_targets:SCRIPT.absent"}, "cannot be imported"),
        ({"configs": [{"x": object()}]}, "x is of type object"),
    ],
)
def test_bad_input_is_refused_before_any_work(options, message, path):
    arguments = {"configs": [{"x": 1}], "target": "runs_targets:square", "store": path} | options
    with pytest.raises(InputError, match=message):
        runs.execute(**arguments)
    with Store(path) as store:
        assert len(store) == 0


def test_a_configuration_belongs_to_one_target(path):
    runs.execute([{"x": 2}], "runs_targets:square", store=path)
    with pytest.raises(InputError, match="have been run with the target 'runs_targets:square'"):
        runs.execute([{"x": 2}], "runs_targets:fail_on_odd", store=path)


def _driver(path, log, count, executor="processes"):
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent)}
    command = [sys.executable, str(SCRIPT), str(path), str(log), str(count), executor]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
def test_kill_at_ten_random_moments_loses_nothing_and_runs_nothing_twice(path, tmp_path):
    count, log, moments = 100, tmp_path / "log", random.Random(4)
    kept, finished = {}, 0
    for number in range(10):
        begun = len(_starts(log))
        driver = _driver(path, log, count, executor=("processes", "inline")[number % 2])
        # Half of the kills fall anywhere from the first instant of the interpreter on, half amid the grid.
        if number >= 5:
            _until(lambda begun=begun, driver=driver: len(_starts(log)) > begun or driver.poll() is not None)
        time.sleep(moments.uniform(0.0, 0.4))
        driver.kill()
        finished += driver.wait() == 0
        driver.stdout.close()
        assert not set(_starts(log)[begun:]) & set(kept), "a stored run was started again"
        if path.exists():
            with Store(path) as store:
                now = {found.config["x"]: found for found in store.query()}
            assert {x: now.get(x) for x in kept} == kept, "a stored run was lost or changed"
            kept = now
    assert finished < 5
    assert kept
    configs = runs.grid({"log": str(log), "nap": 0.03}, {"x": range(count)})
    summary = runs.execute(configs, "runs_targets:square", store=path)
    assert (summary.found, summary.here, summary.failed) == (len(kept), count - len(kept), 0)
    assert [found.result["square"] for found in summary.records] == [x * x for x in range(count)]
    # A run is started anew only if a kill took it: at most two were under way at each.
    assert len(_starts(log)) <= count + 20


def test_workers_end_with_a_killed_driver(path, tmp_path):
    log = tmp_path / "log"
    code = (
        "from dissensus import runs; "
        f"runs.execute([{{'x': 1, 'nap': 60, 'log': {str(log)!r}}}], 'runs_targets:square', "
        f"store={str(path)!r}, executor='processes')"
    )
    driver = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SCRIPT.parent)})
    _until(lambda: log.exists() and log.read_text().endswith("\n"))
    worker = int(log.read_text().split()[1])
    assert _claims.birth(worker)
    driver.kill()
    driver.wait()
    _until(lambda: _claims.birth(worker) is None)
    # Its claim is taken over at once.
    with Store(path) as store:
        assert len(store._rows("SELECT * FROM claims")) == 1
        with store._transaction() as connection:
            assert _claims.Owner().claim(connection, runs.key({"x": 1, "nap": 60, "log": str(log)}))


@pytest.mark.slow
def test_an_interrupt_from_the_terminal_ends_workers_and_gives_back_their_runs(path, tmp_path):
    log = tmp_path / "log"
    code = (
        "from dissensus import runs; "
        f"runs.execute([{{'x': x, 'nap': 30 * x, 'log': {str(log)!r}}} for x in (0, 1)], 'runs_targets:square', "
        f"store={str(path)!r}, executor='processes', workers=2)"
    )
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parent)}
    # In a group of its own, as a terminal would start it; the interrupt goes to all of the group.
    driver = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _until(lambda: len(_starts(log)) == 2)

    def stored():
        with Store(path) as store:
            return len(store)

    _until(stored)
    os.killpg(driver.pid, signal.SIGINT)
    _, trouble = driver.communicate(timeout=30)
    assert driver.returncode != 0
    assert trouble.count("KeyboardInterrupt") == 1
    with Store(path) as store:
        assert [found.config["x"] for found in store.query()] == [0]
        assert store._rows("SELECT * FROM claims") == []
    workers = [int(line.split()[1]) for line in log.read_text().splitlines()]
    assert [_claims.birth(worker) for worker in workers] == [None, None]


def _until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@pytest.mark.slow
def test_two_drivers_on_one_store_share_the_grid(path, tmp_path):
    log, count = tmp_path / "log", 30
    drivers = [_driver(path, log, count) for _ in range(2)]
    outputs = [driver.communicate(timeout=60)[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0]
    assert Counter(_starts(log)) == Counter(range(count))
    # Both came back with the whole grid, and between them they made each run once.
    assert all(output.startswith(f"{count} runs: ") for output in outputs)
    assert sum(int(output.split()[2]) for output in outputs) == count


def _start_inline(config, path):
    code = f"from dissensus import runs; runs.execute([{config!r}], 'runs_targets:dawdle_once', store={str(path)!r})"
    return subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SCRIPT.parent)})


@pytest.mark.slow
def test_many_drivers_may_make_the_store_at_once(path):
    code = f"from dissensus.runs import Store; [Store({str(path)!r} + str(n)).close() for n in range(20)]"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4


@pytest.mark.slow
def test_a_driver_waits_for_the_runs_of_another(path, tmp_path):
    config = {"x": 3, "once": str(tmp_path / "once"), "dawdle": 0.7}
    other = _start_inline(config, path)
    _until(Path(config["once"]).exists)
    seen = []
    summary = runs.execute([config], "runs_targets:dawdle_once", store=path, on_result=seen.append)
    assert other.wait() == 0
    assert (summary.here, summary.elsewhere) == (0, 1)
    assert seen == summary.records
    assert seen[0].result["pid"] == other.pid


@pytest.mark.slow
def test_a_driver_takes_over_from_one_that_dies(path, tmp_path):
    config = {"x": 3, "once": str(tmp_path / "once"), "dawdle": 60}
    other = _start_inline(config, path)
    _until(Path(config["once"]).exists)

    def kill():
        other.kill()
        other.wait()

    threading.Timer(0.4, kill).start()
    summary = runs.execute([config], "runs_targets:dawdle_once", store=path)
    assert (summary.here, summary.elsewhere) == (1, 0)
    assert summary.records[0].result["square"] == 9


@pytest.mark.slow
def test_a_run_that_another_driver_has_retried_is_not_retried_again(path, tmp_path):
    log = tmp_path / "log"
    config = {"x": 1, "log": str(log)}
    runs.execute([{"x": 3}, config], "runs_targets:fail_on_odd", store=path)
    with Store(path) as store:
        other = []

        def retry_elsewhere(found):
            if not other:
                other.append(runs.execute([config], "runs_targets:fail_on_odd", store=path, retry_failed=True))

        summary = runs.execute(
            [{"x": 3}, config], "runs_targets:fail_on_odd", store=store, retry_failed=True, on_result=retry_elsewhere
        )
    assert other[0].here == 1
    assert (summary.here, summary.elsewhere) == (1, 1)


def test_what_a_callback_raises_ends_the_call_and_keeps_the_run(path):
    def stop(found):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        runs.execute(runs.grid({}, {"x": range(3)}), "runs_targets:square", store=path, on_result=stop)
    with Store(path) as store:
        assert len(store) == 1

"""Targets that the tests run in workers, and a driver script that the tests kill."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any


def square(config: dict[str, Any]) -> dict[str, Any]:
    """Square x, after a nap if asked; says in a log that it started."""
    if "log" in config:
        with Path(config["log"]).open("a") as log:
            log.write(f"{config['x']} {os.getpid()}\n")
    time.sleep(config.get("nap", 0.0))
    return {"square": config["x"] ** 2, "pid": os.getpid()}


def fail_on_odd(config: dict[str, Any]) -> dict[str, Any]:
    """Raise for odd x."""
    if config["x"] % 2:
        raise ValueError(f"{config['x']} is odd")
    return square(config)


def die_on_odd(config: dict[str, Any]) -> dict[str, Any]:
    """Die for odd x as if killed by the system; with a ``once`` file only the first time."""
    if config["x"] % 2 and not Path(config.get("once", "")).is_file():
        if "once" in config:
            Path(config["once"]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(config)


def dawdle_once(config: dict[str, Any]) -> dict[str, Any]:
    """Square x, with a long nap unless another has begun this run before."""
    if not Path(config["once"]).exists():
        Path(config["once"]).touch()
        time.sleep(config["dawdle"])
    return square(config)


def threads(config: dict[str, Any]) -> dict[str, Any]:
    """What a worker's environment says about threads; prints and reads, which must not disturb the driver."""
    print("a target may print")
    return {"omp": os.environ["OMP_NUM_THREADS"], "mkl": os.environ["MKL_NUM_THREADS"], "read": sys.stdin.read()}


def interrupt(config: dict[str, Any]) -> dict[str, Any]:
    """As if the user interrupted the third run."""
    if config["x"] == 2:
        raise KeyboardInterrupt
    return square(config)


def bulky(config: dict[str, Any]) -> dict[str, Any]:
    """A result of 100 kB."""
    return {"text": "x" * 100_000}


def give(config: dict[str, Any]) -> Any:
    """A result that is not what a target may return."""
    return {"object": object()} if config["x"] else 3


def main() -> None:
    """The driver that tests start and kill: STORE LOG COUNT EXECUTOR."""
    from dissensus import runs

    store, log, count, executor = sys.argv[1:]
    configs = runs.grid({"log": log, "nap": 0.03}, {"x": range(int(count))})
    workers = None if executor == "inline" else 2
    print(runs.execute(configs, "runs_targets:square", store=store, executor=executor, workers=workers))


if __name__ == "__main__":
    main()

"""A worker process. For each run it reads a JSON line with the configuration and writes one with the outcome.

The lines carry plain values only, and a worker does not import the driver's main module, so scripts need no
``if __name__ == "__main__"`` guard.
"""

import json
import os
import signal
import sys
import threading
from queue import SimpleQueue
from typing import TextIO

from dissensus.runs._call import call, import_target


def main() -> None:
    """Execute runs until standard input ends. Command line arguments: target, threads."""
    target, threads = sys.argv[-2], int(sys.argv[-1])
    # An interrupt from the terminal is sent to the workers, too, but only the driver handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The pipes to the driver get other descriptors: what the target prints goes to standard error, its input is empty.
    requests, responses = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.dup2(2, 1)

    import_target(target)
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests, tasks), daemon=True).start()
    responses.write("ready\n")
    while True:
        responses.flush()
        outcome = call(target, json.loads(tasks.get()), threads)
        responses.write(json.dumps(outcome) + "\n")


def _listen(requests: TextIO, tasks: SimpleQueue[str]) -> None:
    for line in requests:
        tasks.put(line)
    # The driver has ended, so nobody would store this run, and another driver may already execute it.
    os._exit(1)

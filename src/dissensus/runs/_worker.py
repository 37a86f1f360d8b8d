"""A worker process: one JSON line in for each run, one JSON line out with its outcome.

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
    """Serve runs until standard input ends. Arguments: target, threads."""
    target, threads = sys.argv[-2], int(sys.argv[-1])
    # An interrupt from the terminal reaches the whole group; the driver alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The pipes to the driver move out of the target's way: what it prints goes to standard error, and it reads nothing.
    questions, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)

    import_target(target)
    tasks: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(questions, tasks), daemon=True).start()
    answers.write("ready\n")
    while True:
        answers.flush()
        outcome = call(target, json.loads(tasks.get()), threads)
        answers.write(json.dumps(outcome) + "\n")


def _listen(questions: TextIO, tasks: SimpleQueue[str]) -> None:
    for line in questions:
        tasks.put(line)
    # The driver is gone, perhaps killed: nobody will store this run, and another driver may be starting it again.
    os._exit(1)

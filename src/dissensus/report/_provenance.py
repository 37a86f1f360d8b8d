"""Where a result comes from, without names of users and hosts."""

import getpass
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dissensus import __version__

_PACKAGES = ("torch", "torch_geometric", "torchdiffeq", "numpy", "scipy")
_PRIVATE = re.compile(
    r"(?P<scheme>\w+://)[^\s/]+"  # the host of an address
    r"|(?<![^=,:'\"])(?:[A-Za-z]:[\\/]|[\\/]|~)(?:[^\\/,:]*[\\/])*"  # the folders of an absolute path
)


def provenance() -> dict[str, str]:
    """Versions, hardware, date (UTC) and command line of this process.

    Versions are read from package metadata, so nothing heavy is imported. A GPU is named if torch has been imported.
    Folders of absolute paths and network addresses are left out of the command, because they contain user and host
    names.
    """
    facts = {
        "command": command_line(sys.argv),
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "dissensus": __version__,
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    facts |= {"platform": f"{platform.system()} {platform.machine()}", "cpu": _cpu(), "cores": str(_cores())}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def command_line(argv: Sequence[str]) -> str:
    """The command as one could type it, without folders and addresses, which contain user and host names.

    >>> command_line(["/home/someone/bin/dissensus", "train", "--store=/home/someone/runs.db"])
    'dissensus train --store=runs.db'
    """
    program = Path(argv[0])
    name = program.parent.name if program.name == "__main__.py" else program.name
    return shlex.join([name, *map(_anonymous, argv[1:])])


def _anonymous(argument: str) -> str:
    if not re.search(r"[\\/]", argument):
        return argument
    short = _PRIVATE.sub(lambda found: f"{found['scheme']}host" if found["scheme"] else "", argument)
    try:
        user = re.escape(getpass.getuser())
    except (KeyError, OSError, ImportError):  # in a container, the user may have no name
        return short
    return re.sub(rf"(?<![\w.-]){user}(?![\w.-])", "user", short)


def _cpu() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
        if sys.platform == "darwin":
            return subprocess.check_output(["sysctl", "-n", "machdep.cpu.brand_string"], text=True).strip()
    except (OSError, subprocess.SubprocessError):
        pass
    return platform.processor() or platform.machine()


def _cores() -> int:
    # Containers and batch systems often grant fewer cores than the machine has.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

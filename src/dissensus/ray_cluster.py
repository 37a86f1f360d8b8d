"""Connections to an existing Ray cluster or to a new local one, without Ray's messages. Ray is optional."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any

from dissensus.errors import InputError, optional

# Send no usage statistics, and do not warn about accelerators of tasks that request none.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
# A local cluster only uses the loopback interface, not the network.
_LOCAL = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} | ({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {})


@contextmanager
def connected(address: str | None, cores: int | None, environment: Mapping[str, str] | None = None) -> Iterator[Any]:
    """The module ``ray``, connected to the cluster at ``address``, or at ``RAY_ADDRESS``, or to a new local one.

    An existing connection is used and kept. Inside the ``with`` block, standard output is redirected to standard error,
    so that Ray's messages do not mix with the output of a command.

    Args:
        address: address of a running cluster.
        cores: number of cores of a new local cluster; None for all.
        environment: variables to set before Ray is imported, unless they are already set.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    ray = import_ray(address, environment)
    with redirect_stdout(sys.stderr):
        fresh = not ray.is_initialized()
        if fresh:
            connect(ray, address, cores)
        try:
            yield ray
        finally:
            if fresh:
                ray.shutdown()


def import_ray(address: str | None, environment: Mapping[str, str] | None = None) -> Any:
    """Import ``ray`` with its environment variables set. If it is missing, the error names the extra to install."""
    # Ray reads these when it is imported, and its workers inherit them.
    for name, value in (_ENVIRONMENT | dict(environment or {}) | ({} if address else _LOCAL)).items():
        os.environ.setdefault(name, value)
    return optional("ray", "ray")


def connect(ray: Any, address: str | None, cores: int | None) -> None:
    """Connect to the cluster at ``address``; without one, start a cluster of ``cores`` on the loopback interface."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        if address is None:
            ray.init(address="local", num_cpus=cores, include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        cure = "; check the address, and set RAY_AUTH_TOKEN to its token if it asks for one" if address else ""
        raise InputError(f"cannot connect to Ray at {address or 'a new local cluster'}: {error}{cure}") from error

"""A Ray cluster of two nodes on the loopback interface, one of which is killed amid a grid; prints what came of it.

A program of its own, because Ray decides about the interface when it is imported.
"""

import json
import sys

from ray.cluster_utils import Cluster

from dissensus import runs


def processes(records: list[runs.Record]) -> set[int]:
    """Those who made the runs."""
    return {record.provenance["pid"] for record in records}


def main(store: str) -> None:
    """Argument: path of the store."""
    one_core = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=one_core | {"include_dashboard": False})
    second = cluster.add_node(**one_core)
    cluster.wait_for_nodes()
    finished: list[runs.Record] = []
    killed: list[int] = []  # after so many runs

    def kill_the_second_node(record: runs.Record) -> None:
        finished.append(record)
        # On a busy machine a node may take seconds to make its first run.
        if not killed and len(finished) >= 4 and len(processes(finished)) == 2:
            killed.append(len(finished))
            cluster.remove_node(second, allow_graceful=False)

    configs = runs.grid({"nap": 0.8}, {"x": range(12)})
    options = {"store": store, "executor": "ray", "address": cluster.address}
    first = runs.execute(configs, "runs_targets:square", on_result=kill_the_second_node, **options)
    # What is left of the cluster goes on: a failing run, a dying worker, and nothing is made again.
    failing = runs.execute(runs.grid({"y": 0}, {"x": [0, 1]}), "runs_targets:fail_on_odd", **options)
    dying = runs.execute(runs.grid({"y": 1}, {"x": [0, 1]}), "runs_targets:die_on_odd", **options)
    again = runs.execute(configs, "runs_targets:square", **options)
    cluster.shutdown()
    answer = {
        "squares": [record.result and record.result["square"] for record in first.records],
        "processes": len(processes(finished)),
        "killed": killed,
        "calls": len(finished),
        "failing": [record.error for record in failing.records],
        "dying": [record.error for record in dying.records],
        "again": again.here,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])

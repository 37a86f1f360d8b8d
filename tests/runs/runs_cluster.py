"""A Ray cluster of two nodes on the loopback interface, one of which is killed amid a grid; prints what came of it.

A program of its own, because Ray decides about the interface when it is imported.
"""

import json
import sys

from ray.cluster_utils import Cluster

from dissensus import runs


def main(store: str) -> None:
    """Argument: path of the store."""
    one_core = {"num_cpus": 1, "node_ip_address": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args=one_core | {"include_dashboard": False})
    second = cluster.add_node(**one_core)
    cluster.wait_for_nodes()
    finished: list[runs.Record] = []

    def kill_the_second_node(record: runs.Record) -> None:
        finished.append(record)
        if len(finished) == 4:
            cluster.remove_node(second, allow_graceful=False)

    configs = runs.grid({"nap": 0.3}, {"x": range(12)})
    options = {"store": store, "executor": "ray", "address": cluster.address}
    first = runs.execute(configs, "runs_targets:square", on_result=kill_the_second_node, **options)
    # What is left of the cluster goes on: a failing run, a dying worker, and nothing is made again.
    failing = runs.execute(runs.grid({"y": 0}, {"x": [0, 1]}), "runs_targets:fail_on_odd", **options)
    dying = runs.execute(runs.grid({"y": 1}, {"x": [0, 1]}), "runs_targets:die_on_odd", **options)
    again = runs.execute(configs, "runs_targets:square", **options)
    cluster.shutdown()
    answer = {
        "squares": [record.result and record.result["square"] for record in first.records],
        "processes": len({record.provenance["pid"] for record in finished}),
        "calls": len(finished),
        "failing": [record.error for record in failing.records],
        "dying": [record.error for record in dying.records],
        "again": again.here,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])

"""Distributed training on one or several machines, with Ray Train and torch's DistributedDataParallel."""

from collections.abc import Callable
from dataclasses import fields, replace
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed

from dissensus.data import Clusters
from dissensus.errors import DissensusError, InputError, optional
from dissensus.ray_cluster import connected
from dissensus.train._config import Config
from dissensus.train._fit import Epoch, Result, WorkerGroup
from dissensus.train._run import Run, run_on

_T = TypeVar("_T")


def run_distributed(
    config: Config, *, workers: int, threads: int, address: str | None, progress: Callable[[Epoch], None] | None
) -> Run:
    """:func:`run` with ``workers``."""
    settings = config.train
    if workers < 1 or threads < 1:
        raise InputError(f"{workers} workers with {threads} threads each: give at least one")
    if settings.clusters is None:
        raise InputError("the workers share clusters of nodes: set train.clusters, such as 8 times their number")
    Clusters.check_share(settings.clusters, settings.clusters_per_step or 1, workers)
    gpu = not settings.device.startswith("cpu")
    if not gpu:
        config.check()
    dataset = config.data.load()
    dataset.split(config.data.split)
    with connected(address, workers * threads, {"RAY_TRAIN_V2_ENABLED": "1"}) as ray, TemporaryDirectory() as folder:
        ray_train = optional("ray[train]", "ray", "ray.train")
        from ray.train.torch import TorchTrainer
        from ray.util.queue import Queue

        messages = Queue(actor_options={"num_cpus": 0})
        trainer = TorchTrainer(
            _worker,
            train_loop_config={
                "config": config.as_dict(),
                "dataset": ray.put(dataset),
                "threads": threads,
                "messages": messages,
            },
            scaling_config=ray_train.ScalingConfig(
                num_workers=workers, use_gpu=gpu, resources_per_worker={"CPU": threads, "GPU": int(gpu)}
            ),
            run_config=ray_train.RunConfig(storage_path=folder),
        )
        answer = _wait_for_result(trainer, messages, progress)
    if isinstance(answer, DissensusError):
        raise answer
    if isinstance(answer, Exception):
        raise DissensusError(f"the workers failed; the error from Ray is: {answer}") from answer
    return Run(config=config, dataset=dataset, **answer)


def _wait_for_result(trainer: Any, messages: Any, progress: Callable[[Epoch], None] | None) -> Any:
    """Run the training and return the result or the error of the first worker; ``progress`` gets every epoch."""
    results: list[Any] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            trainer.fit()
        except Exception as error:
            failures.append(error)
        finally:
            messages.put(None)

    # In the main thread, Ray would replace the handler of the keyboard interrupt for good.
    Thread(target=run, daemon=True).start()
    while (message := messages.get()) is not None:
        if not isinstance(message, Epoch):
            results.append(message)
        elif progress is not None:
            progress(message)
    # The worker's own error is closer to the cause than Ray's.
    return (results + failures + [DissensusError("the workers ended without a result: look into Ray's logs")])[0]


def _worker(task: dict[str, Any]) -> None:
    """Train as one of the workers."""
    import ray
    from ray.train.torch import get_device

    torch.set_num_threads(task["threads"])
    config, messages, group = Config.from_dict(task["config"]), task["messages"], _ProcessGroup()
    # Ray assigns the GPUs.
    config = replace(config, train=replace(config.train, device=str(get_device())))
    progress = messages.put if group.rank == 0 else None
    try:
        result = run_on(config, ray.get(task["dataset"]), group, progress=progress)
    except DissensusError as error:
        messages.put(error)
        raise
    if group.rank == 0:
        result.model.cpu()
        names = [field.name for field in fields(Result)]
        messages.put({name: getattr(result, name) for name in names})


class _ProcessGroup(WorkerGroup):
    """The processes in torch's default process group."""

    def __init__(self) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def wrap(self, model: torch.nn.Module) -> Callable[..., Tensor]:
        # Some models do not use all of their parameters. Buffers depend on the batch of their worker.
        return torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True, broadcast_buffers=False)

    def sum(self, value: float) -> float:
        # NCCL only sends GPU tensors, but objects can be sent with every backend.
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return float(sum(values))

    def broadcast(self, function: Callable[[], _T]) -> _T:
        results: list[Any] = [function() if self.rank == 0 else None]
        distributed.broadcast_object_list(results, src=0)
        result: _T = results[0]
        return result

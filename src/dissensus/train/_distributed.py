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
from dissensus.train._fit import Epoch, Result, Team
from dissensus.train._run import Run, run_on

_Made = TypeVar("_Made")


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
            _work,
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
        answer = _answer(trainer, messages, progress)
    if isinstance(answer, DissensusError):
        raise answer
    if isinstance(answer, Exception):
        raise DissensusError(f"the workers failed; the error from Ray is: {answer}") from answer
    return Run(config=config, dataset=dataset, **answer)


def _answer(trainer: Any, messages: Any, progress: Callable[[Epoch], None] | None) -> Any:
    """The result or the error of the first worker. Passes every epoch on to ``progress``."""
    ended: list[Any] = []
    failures: list[Exception] = []

    def run() -> None:
        try:
            trainer.fit()
        except Exception as error:
            failures.append(error)
        finally:
            messages.put(None)

    # In the main thread Ray would take over the interrupt for good.
    Thread(target=run, daemon=True).start()
    while (message := messages.get()) is not None:
        if not isinstance(message, Epoch):
            ended.append(message)
        elif progress is not None:
            progress(message)
    # The worker's own error is closer to the cause than Ray's.
    return (ended + failures + [DissensusError("the workers ended without a result: look into Ray's logs")])[0]


def _work(task: dict[str, Any]) -> None:
    """The task of a worker."""
    import ray
    from ray.train.torch import get_device

    torch.set_num_threads(task["threads"])
    config, messages, team = Config.from_dict(task["config"]), task["messages"], _Workers()
    # Ray assigns the GPUs.
    config = replace(config, train=replace(config.train, device=str(get_device())))
    progress = messages.put if team.rank == 0 else None
    try:
        result = run_on(config, ray.get(task["dataset"]), team, progress=progress)
    except DissensusError as error:
        messages.put(error)
        raise
    if team.rank == 0:
        result.model.cpu()
        names = [field.name for field in fields(Result)]
        messages.put({name: getattr(result, name) for name in names})


class _Workers(Team):
    """The processes in torch's default process group."""

    def __init__(self) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def join(self, model: torch.nn.Module) -> Callable[..., Tensor]:
        # Not every model uses all of its parameters; buffers belong to one worker's batch.
        return torch.nn.parallel.DistributedDataParallel(model, find_unused_parameters=True, broadcast_buffers=False)

    def total(self, value: float) -> float:
        # NCCL takes only tensors on a GPU; an object goes over either.
        values: list[Any] = [None] * self.size
        distributed.all_gather_object(values, value)
        return float(sum(values))

    def first(self, make: Callable[[], _Made]) -> _Made:
        made: list[Any] = [make() if self.rank == 0 else None]
        distributed.broadcast_object_list(made, src=0)
        found: _Made = made[0]
        return found

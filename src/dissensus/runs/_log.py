"""Loggers for TensorBoard, Weights & Biases and MLflow."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dissensus.errors import InputError, MissingExtraError, one_of, optional
from dissensus.train import Config


class Logger(ABC):
    """Logs the metrics of runs, one run after another."""

    current = ""

    def log(self, run: str, config: Config, step: int, values: Mapping[str, float]) -> None:
        """Log the values of the run named ``run`` at an epoch."""
        if run != self.current:
            self.close()
            self.begin(run, config)
            self.current = run
        self.write(step, values)

    def close(self) -> None:
        """End the current run."""
        if self.current:
            self.end()
        self.current = ""

    @abstractmethod
    def begin(self, run: str, config: Config) -> None: ...
    @abstractmethod
    def write(self, step: int, values: Mapping[str, float]) -> None: ...
    @abstractmethod
    def end(self) -> None: ...


def open_logger(spec: str) -> Logger:
    """The logger of ``tensorboard:DIR``, ``wandb:PROJECT`` or ``mlflow:URI``."""
    kind, colon, target = spec.partition(":")
    one_of("logger", kind, _LOGGERS)
    if not colon or not target:
        raise InputError(f"--log is {spec!r}: give tensorboard:DIR, wandb:PROJECT or mlflow:URI")
    logger: Logger = _LOGGERS[kind](target)
    return logger


class TensorBoard(Logger):
    """Event files, in ``folder`` with a subfolder for each run."""

    def __init__(self, folder: str) -> None:
        self._tensorboard, self._folder = optional("tensorboard", "logging", "torch.utils.tensorboard"), folder
        self._writer: Any = None

    def begin(self, run: str, config: Config) -> None:
        self._writer = self._tensorboard.SummaryWriter(f"{self._folder}/{run}")
        self._writer.add_text("config", str(config.as_dict()))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def end(self) -> None:
        self._writer.close()


class WeightsAndBiases(Logger):
    """Runs of a project."""

    def __init__(self, project: str) -> None:
        self._wandb, self._project = _installed("wandb"), project
        self._run: Any = None

    def begin(self, run: str, config: Config) -> None:
        self._run = self._wandb.init(project=self._project, name=run, config=config.as_dict())

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def end(self) -> None:
        self._run.finish()


class MLflow(Logger):
    """Runs at a tracking URI, which is a folder or a server."""

    def __init__(self, uri: str) -> None:
        self._mlflow = _installed("mlflow")
        self._mlflow.set_tracking_uri(uri)

    def begin(self, run: str, config: Config) -> None:
        self._mlflow.start_run(run_name=run)
        sections = config.as_dict().items()
        self._mlflow.log_params({f"{name}.{key}": value for name, part in sections for key, value in part.items()})

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(values), step=step)

    def end(self) -> None:
        self._mlflow.end_run()


def _installed(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(f"{package} is not installed; install it with: pip install {package}") from error


_LOGGERS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases, "mlflow": MLflow}

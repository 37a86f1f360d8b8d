"""Where training can be followed besides the terminal: TensorBoard, Weights & Biases, MLflow."""

from collections.abc import Mapping
from typing import Any, Protocol

from dissensus.errors import InputError, MissingExtraError, missing_extra, one_of
from dissensus.train import Config


class Logger(Protocol):
    """Takes the numbers of one run after the other."""

    def log(self, run: str, config: Config, step: int, values: Mapping[str, float]) -> None:
        """Numbers of the run named ``run`` at an epoch."""

    def close(self) -> None:
        """Write what is left."""


def open_logger(spec: str) -> Logger:
    """The logger of ``tensorboard:DIR``, ``wandb:PROJECT`` or ``mlflow:URI``."""
    kind, colon, place = spec.partition(":")
    one_of("logger", kind, _LOGGERS)
    if not colon or not place:
        raise InputError(f"--log is {spec!r}: say where to, as tensorboard:DIR, wandb:PROJECT or mlflow:URI")
    return _LOGGERS[kind](place)


class TensorBoard:
    """Event files in a folder of each run's own below ``place``."""

    def __init__(self, place: str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise missing_extra("tensorboard", "logging") from error
        self._make, self._place = SummaryWriter, place
        self._run = ""
        self._writer: Any = None

    def log(self, run: str, config: Config, step: int, values: Mapping[str, float]) -> None:
        if run != self._run:
            self.close()
            self._run, self._writer = run, self._make(f"{self._place}/{run}")
            self._writer.add_text("config", str(config.as_dict()))
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._run, self._writer = "", None


class WeightsAndBiases:
    """Runs of the project ``place``."""

    def __init__(self, place: str) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtraError("wandb is not installed; install it with: pip install wandb") from error
        self._wandb, self._place = wandb, place
        self._run = ""
        self._open: Any = None

    def log(self, run: str, config: Config, step: int, values: Mapping[str, float]) -> None:
        if run != self._run:
            self.close()
            self._run = run
            self._open = self._wandb.init(project=self._place, name=run, config=config.as_dict())
        self._open.log(dict(values), step=step)

    def close(self) -> None:
        if self._open is not None:
            self._open.finish()
        self._run, self._open = "", None


class MLflow:
    """Runs at the tracking address ``place``, a folder or a server."""

    def __init__(self, place: str) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise MissingExtraError("mlflow is not installed; install it with: pip install mlflow") from error
        self._mlflow = mlflow
        mlflow.set_tracking_uri(place)
        self._run = ""

    def log(self, run: str, config: Config, step: int, values: Mapping[str, float]) -> None:
        if run != self._run:
            self.close()
            self._run = run
            self._mlflow.start_run(run_name=run)
            sections = config.as_dict().items()
            self._mlflow.log_params({f"{name}.{key}": value for name, part in sections for key, value in part.items()})
        self._mlflow.log_metrics(dict(values), step=step)

    def close(self) -> None:
        if self._run:
            self._mlflow.end_run()
        self._run = ""


_LOGGERS: dict[str, Any] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases, "mlflow": MLflow}

"""Records made up for the tests of the store."""

from typing import Any

from dissensus import runs


def record(config: dict[str, Any], result: dict[str, Any] | None = None, error: str | None = None) -> runs.Record:
    """A run that is done with ``result``, or failed with ``error``."""
    return runs.Record(
        key=runs.key(config),
        target="module:function",
        status="failed" if error else "done",
        config=config,
        result=result,
        error=error,
        traceback=f"Traceback\n{error}" if error else None,
        seconds=1.5,
        started="2020-01-01T00:00:00.000000+00:00",
        finished="2020-01-01T00:00:01.500000+00:00",
        provenance={"host": "here", "threads": 1},
    )

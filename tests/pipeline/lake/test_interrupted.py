"""A job that a signal ends says so, also where the signal ends Java first."""

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake import run
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.run import Told, run_lakes
from strandline.pipeline.runtime.session import SessionOptions

SESSION = SessionOptions("lake orders", Path("jars"))


class _Job:
    """A job that has something to read."""

    total = 1
    is_idle = False

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def look(self, *_: object) -> None:
        """Sees nothing."""


def run_without_java(
    monkeypatch: pytest.MonkeyPatch, table: Path, *, signal_number: int | None
) -> None:
    """Runs a job whose session fails, after this signal."""

    @contextmanager
    def session(_: SessionOptions) -> Iterator[None]:
        if signal_number is not None:
            signal.raise_signal(signal_number)
        raise OperatorError("Spark: connection refused")
        yield

    def cluster(_: str, _buckets: object, *, access: object) -> AbstractContextManager[None]:
        return nullcontext()

    monkeypatch.setattr(run, "Cluster", cluster)
    monkeypatch.setattr(run, "LakeJob", _Job)
    monkeypatch.setattr(run, "open_session", session)
    options = LakeOptions(bootstrap="broker:9092", topics=("orders",), table=str(table))
    told = Told(batch=lambda *_: None, notice=lambda _: None, status=lambda _: None)
    run_lakes([options], SESSION, told=told)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_error_after_a_signal_is_the_interruption(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_without_java(monkeypatch, tmp_path / "lake", signal_number=number)


def test_an_error_without_a_signal_stays_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(OperatorError, match="Spark: connection refused"):
        run_without_java(monkeypatch, tmp_path / "lake", signal_number=None)

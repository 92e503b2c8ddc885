"""A broker's log: one line per event, as key=value pairs or as JSON.

Why:    people read the lines with grep, programs with a JSON parser; a traceback over
        twenty lines serves neither. A name that a client chose forges no line.
Source: docs/reference/broker-config.md, [log]."""

import json
import logging
import sys
import time
from typing import TextIO

from strandline.base.errors import OperatorError
from strandline.base.printable import printable_json
from strandline.config.broker import BrokerConfig

_NO_QUOTES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:/_-+@[]%")


class LineFormatter(logging.Formatter):
    """Formats a record as one line; `broker_id` is on every line, or the supervisor's name."""

    def __init__(self, *, broker_id: int | str, as_json: bool) -> None:
        super().__init__()
        self._broker_id = broker_id
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        fields: dict[str, str | int] = {
            "time": _timestamp(record.created),
            "level": record.levelname.lower(),
            "broker": self._broker_id,
            "room": record.name.removeprefix("strandline."),
            "event": record.getMessage(),
        }
        if record.exc_info:
            fields["cause"] = self.formatException(record.exc_info)
        if self._as_json:
            return printable_json(json.dumps(fields, ensure_ascii=False))
        return " ".join(f"{name}={_quoted(value)}" for name, value in fields.items())


def configure_logging(config: BrokerConfig, *, name: str = "") -> None:
    """Send what the broker says where its configuration wants it; raises OperatorError. `name`:
    what stands in place of the broker's id."""
    stream: TextIO = sys.stderr
    if config.log.file:
        try:
            stream = open(config.log.file, "a", encoding="utf-8")  # noqa: SIM115 (for good)
        except OSError as error:
            raise OperatorError(
                f"[log] file: cannot append to {config.log.file}: {error.strerror}"
            ) from error
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        LineFormatter(broker_id=name or config.broker.id, as_json=config.log.format == "json")
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(config.log.level.upper())


def _timestamp(seconds: float) -> str:
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{whole}.{int(seconds % 1 * 1000):03d}Z"


def _quoted(value: str | int) -> str:
    text = str(value)
    if text and _NO_QUOTES.issuperset(text):
        return text
    return printable_json(json.dumps(text, ensure_ascii=False))

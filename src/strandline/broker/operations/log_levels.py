"""The levels of this broker's loggers, read and changed while it runs.

Why:    an operator looks closer at one part of a broker without a restart, with Kafka's tools.
How:    `root` has the level of the broker's file; every other logger has the level of the one above
        it until it gets its own. A restart forgets what was changed.
Owns:   nothing; the levels are Python's.
Source: KIP-412."""

import logging
from collections.abc import Collection, Iterable

from strandline.base.errors import ApiError
from strandline.controller.commands import ConfigOperation
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error

BROKER_LOGGER = 8
"""Kafka's type of a resource that has levels; its name is the broker's id."""
ROOT = "root"
_PREFIX = "strandline"
_LEVELS = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}
_NAMES = {number: name for name, number in reversed(_LEVELS.items())}

LevelChange = tuple[str, int, str | None]
"""(logger, `ConfigOperation`, level)"""


def require_own_loggers(broker: BrokerId, name: str) -> None:
    """Raises ApiError unless the loggers named are this broker's."""
    if name != str(broker):
        reason = f"this is broker {broker}: ask broker {name[:20]!r} itself"
        raise ApiError(Error.INVALID_REQUEST, reason)


def levels() -> dict[str, str]:
    """{logger: its level in force}, `root` first."""
    known = (name for name in logging.root.manager.loggerDict if name.startswith(_PREFIX))
    return {ROOT: _level_of(logging.root)} | {
        name: _level_of(logging.getLogger(name)) for name in sorted(known)
    }


def change_levels(changes: Iterable[LevelChange], *, validate_only: bool) -> None:
    """Change all these levels or none; raises ApiError."""
    known = levels()
    wanted = [_checked(change, known) for change in changes]
    names = [name for name, _ in wanted]
    if len(set(names)) != len(names):
        raise ApiError(Error.INVALID_REQUEST, "a logger is changed twice")
    for name, number in [] if validate_only else wanted:
        (logging.root if name == ROOT else logging.getLogger(name)).setLevel(number)


def _checked(change: LevelChange, loggers: Collection[str]) -> tuple[str, int]:
    name, operation, level = change
    if name not in loggers:
        raise ApiError(Error.INVALID_CONFIG, f"there is no logger {name[:200]!r}")
    if operation == ConfigOperation.DELETE:
        if name == ROOT:
            raise ApiError(Error.INVALID_REQUEST, "the root logger needs a level")
        return name, logging.NOTSET
    if operation != ConfigOperation.SET:
        raise ApiError(Error.INVALID_REQUEST, "a level can be set or deleted")
    if level not in _LEVELS:
        known = ", ".join(_LEVELS)
        raise ApiError(Error.INVALID_CONFIG, f"{name}: the level must be one of {known}")
    return name, _LEVELS[level]


def _level_of(logger: logging.Logger) -> str:
    number = logger.getEffectiveLevel()
    return _NAMES.get(number, _NAMES[max(one for one in _NAMES if one <= max(number, 10))])

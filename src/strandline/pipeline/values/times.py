"""Dates and timestamps out of ISO 8601 text, exactly.

Why:    a timestamp without a zone is no instant, and one with nanoseconds is not the same instant
        in microseconds.
How:    DATE          2013-01-31
        TIMESTAMP     2013-01-31T05:00:00.123456Z, or with an offset such as +02:00: one instant
        TIMESTAMP_NTZ 2013-01-31T05:00:00.123456, without a zone
        `T` may be a space; minutes, seconds and decimals may be missing. More than six decimals fit
        if the rest are zeros. Years are 0001 to 9999. Zones by name, 24:00 and second 60 are no
        part of this.
Source: RFC 3339; Arrow reads the same texts (`json/columns.py`), and a property compares both."""

import re
from datetime import date, datetime, timedelta
from typing import Final

from strandline.pipeline.values.problems import shown

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[T ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.toordinal()
MICROS = 1_000_000
TIMESTAMP_MIN = (1 - _EPOCH_DAY) * 86_400 * MICROS
"""0001-01-01 00:00, in microseconds."""
TIMESTAMP_MAX = (date.max.toordinal() + 1 - _EPOCH_DAY) * 86_400 * MICROS - 1
DATE_MIN = 1 - _EPOCH_DAY
"""0001-01-01, in days."""
DATE_MAX = date.max.toordinal() - _EPOCH_DAY


def parse_date(text: str) -> tuple[int | None, str | None]:
    """(days from 1970-01-01 or None, the reason or None)"""
    match = _DATE.fullmatch(text)
    try:
        if match:
            return date(*map(int, match.groups())).toordinal() - _EPOCH_DAY, None
    except ValueError:
        pass
    return None, f"{shown(text)} is not a date"


def parse_timestamp(text: str, *, zoned: bool) -> tuple[int | None, str | None]:
    """(microseconds from 1970-01-01 or None, the reason or None). More decimals are cut."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None, f"{shown(text)} is not a timestamp"
    *parts, fraction, zone = match.groups()
    if zoned and zone is None:
        return None, f"{shown(text)} has no time zone"
    if not zoned and zone is not None:
        return None, f"{shown(text)} has a time zone"
    try:
        moment = datetime(*(int(part or 0) for part in parts)) - _EPOCH  # type: ignore[arg-type]
    except ValueError:
        return None, f"{shown(text)} is not a timestamp"
    offset = _offset_s(zone)
    if offset is None:
        return None, f"{shown(text)} is not a timestamp"
    fraction = fraction or ""
    micros = int(fraction[:6].ljust(6, "0"))
    value = moment // timedelta(seconds=1) * MICROS + micros - offset * MICROS
    if not TIMESTAMP_MIN <= value <= TIMESTAMP_MAX:
        return None, f"{shown(text)} is out of range for timestamp"
    if fraction[6:].strip("0"):
        return value, f"{shown(text)} has more than 6 decimals of a second"
    return value, None


def _offset_s(zone: str | None) -> int | None:
    """Seconds east of UTC; None if there is no such offset."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].strip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if zone[0] == "-" else 1)

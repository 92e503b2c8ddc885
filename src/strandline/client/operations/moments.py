"""Moments and durations as text, in the words of every command.

Source: docs/operating/outages.md."""

import datetime

SECOND_MS, MINUTE_MS, HOUR_MS = 1_000, 60_000, 3_600_000


def time_text(wall_ms: int) -> str:
    """A date and time as text, in UTC, to the minute."""
    moment = datetime.datetime.fromtimestamp(wall_ms / 1_000, datetime.UTC)
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def lasting(duration_ms: int) -> str:
    """A duration as text: `12 s`, `12 min`, `3 h 5 min`."""
    if duration_ms < MINUTE_MS:
        return f"{max(0, duration_ms) // SECOND_MS} s"
    if duration_ms < HOUR_MS:
        return f"{duration_ms // MINUTE_MS} min"
    return f"{duration_ms // HOUR_MS} h {duration_ms % HOUR_MS // MINUTE_MS} min"

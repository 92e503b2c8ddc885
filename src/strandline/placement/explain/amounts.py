"""Amounts for people: bytes, and how long they take.

Source: STYLE, "Prose" (units)."""

_UNITS = ("B", "kB", "MB", "GB", "TB")
_UNIT_MAX = 999.95
"""From here on rounding would give 1000.0, so the next unit is used."""
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def format_bytes(count: int) -> str:
    """`3.1 GB`; a GB is 10**9 bytes."""
    amount, unit = float(count), 0
    while amount >= _UNIT_MAX and unit < len(_UNITS) - 1:
        amount, unit = amount / 1_000, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def format_seconds(count: float) -> str:
    """`2.5 h`, `40 s`, `under 1 s`."""
    for length, unit in _SPANS:
        if count >= 2 * length:
            return f"{count / length:.1f} {unit}"
    return f"{count:.0f} s" if count >= 1 else "under 1 s"

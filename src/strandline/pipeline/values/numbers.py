"""Whether the text of a number is exact in a type.

Why:    12.3456 as DECIMAL(18,2), 1e400 as DOUBLE or 9007199254740993 through a DOUBLE would be
        other numbers than the record has.
How:    an integer needs an integer's text (3.0 and 1e3 are not). A DECIMAL needs the same number.
        A DOUBLE or FLOAT fits if, written with as many digits as the text has (17 or 9 at most), it
        is the text's number; or if it is exactly that number. A FLOAT also fits if the text is the
        same number as a DOUBLE, for many programs write it so (0.10000000149011612).
            0.1                    fits: 0.1 is how this DOUBLE is written with one digit
            0.30000000000000004    fits, with 17 digits
            9007199254740993       does not: 9007199254740992 with 16 digits
            1e-400                 does not: it is 0 as DOUBLE
Source: decisions/0051; IEEE 754: 15 digits always survive in a DOUBLE, 17 name each one."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values.problems import shown

INTEGER_BITS: dict[type[T.DataType], int] = {
    T.ByteType: 8,
    T.ShortType: 16,
    T.IntegerType: 32,
    T.LongType: 64,
}
DOUBLE_NORMAL_MIN = 2.2250738585072014e-308
FLOAT_NORMAL_MIN = 1.1754943508222875e-38
FLOAT_MAX = 3.4028234663852886e38

_DIGITS_MAX = {False: (15, 17), True: (6, 9)}
"""{FLOAT: (digits that always survive, digits that name each number)}"""
_EXACT = Context(prec=80, rounding=ROUND_HALF_UP, Emax=10**9, Emin=-(10**9), traps=[])
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
INTEGER_CHARS_MAX = 20


def is_number(text: str) -> bool:
    """Whether JSON would read this text as a number."""
    return _NUMBER.fullmatch(text) is not None


def integer(text: str, data_type: T.DataType) -> tuple[int | None, str | None]:
    """(the value or None, the reason or None). The text is a number of JSON."""
    reason = None
    if _INTEGER.fullmatch(text):
        value = int(text) if len(text) <= INTEGER_CHARS_MAX else None
    else:
        reason = f"{shown(text)} is not written as an integer"
        number = exact(text)
        if number is None or number.adjusted() > INTEGER_CHARS_MAX:
            value = None
        elif number != number.to_integral_value():
            return None, reason
        else:
            value = int(number)
    bits = INTEGER_BITS[type(data_type)]
    if value is None or not -(1 << bits - 1) <= value < 1 << bits - 1:
        return None, f"{shown(text)} is out of range for {data_type.simpleString()}"
    return value, reason


def floating(text: str, data_type: T.DataType) -> tuple[float | None, str | None]:
    """(the nearest value or None, the reason or None). The text is a number, NaN or Infinity."""
    single = isinstance(data_type, T.FloatType)
    name = data_type.simpleString()
    wide = value = float(text)
    if single and value == value:
        with np.errstate(over="ignore"):
            value = float(np.float32(value))
    if value - value != 0:
        if is_number(text):
            return None, f"{shown(text)} is out of range for {name}"
        return value, f"expected {name}, got {shown(text)}"
    if _is_written_so(text, value, single=single):
        return value, None
    if value == wide and _is_written_so(text, wide, single=False):
        return value, None
    return value, f"{shown(text)} is not exact as {name}"


def _is_written_so(text: str, value: float, *, single: bool) -> bool:
    mantissa = re.split("[eE]", text.lstrip("-"))[0].replace(".", "").strip("0")
    digits = len(mantissa)
    safe, most = _DIGITS_MAX[single]
    normal = FLOAT_NORMAL_MIN if single else DOUBLE_NORMAL_MIN
    if not digits or (digits <= safe and abs(value) >= normal):
        return True
    number = exact(text)
    if number is None:
        return False
    if digits <= most and Decimal(f"{value:.{digits - 1}e}") == number:
        return True
    # Half way between two texts, printf and the shortest text may choose different ones.
    shortest = str(np.float32(value)) if single else repr(value)
    return number in (Decimal(shortest), Decimal(value))


def decimal(text: str, data_type: T.DecimalType) -> tuple[Decimal | None, str | None]:
    """(the value, rounded half up if it must be, or None; the reason or None)."""
    name = data_type.simpleString()
    number = exact(text)
    if number is not None and not number:
        return Decimal(0), None
    whole = data_type.precision - data_type.scale
    if number is None or number.adjusted() >= whole:
        return None, f"{shown(text)} is out of range for {name}"
    unit = Decimal((0, (1,), -data_type.scale))
    if number.adjusted() < -data_type.scale - 1:
        rounded = Decimal(0)
    else:
        rounded = number.quantize(unit, context=_EXACT)
    if rounded == number:
        return rounded, None
    reason = f"{shown(text)} has more than {data_type.scale} decimals"
    return (rounded if rounded.adjusted() < whole else None), reason


def exact(text: str) -> Decimal | None:
    """The number itself; None if its exponent is beyond every type."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return None

"""Numbers in the names of objects: of a fixed width, so that names sort as the numbers do.

Source: decisions 0057, 0061 and 0063."""

from collections.abc import Sequence


def join_numbers(numbers: Sequence[int], widths: Sequence[int]) -> str:
    """The text of numbers with so many digits each, as 0007-00012."""
    pairs = zip(numbers, widths, strict=True)
    return "-".join(f"{number:0{width}}" for number, width in pairs)


def split_numbers(text: str, widths: Sequence[int]) -> list[int] | None:
    """The numbers of such a text; None if it is another one."""
    fields = text.split("-")
    is_decimal = all(one.isascii() and one.isdecimal() for one in fields)
    if not is_decimal or [len(one) for one in fields] != list(widths):
        return None
    return [int(one) for one in fields]

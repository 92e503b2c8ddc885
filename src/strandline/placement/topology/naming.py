"""Brokers in a sentence: "broker 3", "brokers 1, 2, 3 and 9 more".

Why:    what is refused, missing or broken names brokers, and two hundred of them fill a page."""

from collections.abc import Sequence

from strandline.model.ids import BrokerId

NAMED_MAX = 12


def brokers_named(brokers: Sequence[BrokerId]) -> str:
    """The brokers by their ids, with the noun; the first of them, and how many more there are."""
    noun = "broker" if len(brokers) == 1 else "brokers"
    more = len(brokers) - NAMED_MAX
    shown = ", ".join(map(str, brokers[:NAMED_MAX]))
    return f"{noun} {shown}" + (f" and {more} more" if more > 0 else "")

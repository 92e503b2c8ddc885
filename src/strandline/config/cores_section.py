"""The section of a broker's file that is about machines with several brokers.

Owns:   nothing.
Source: docs/decisions/0071-cores.md."""

from dataclasses import dataclass

from strandline.config.keys import key

CORES_MAX = 256
"""Brokers of one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresSection:
    """[cores]: for `strandline serve --cores N`, which runs N brokers from this file. See
    docs/operating/cores.md."""

    pin: bool = key(
        False,
        "Whether each broker's process runs on a CPU of its own, of those that the supervisor may "
        "use. If there are fewer CPUs than brokers, several brokers share one.",
    )

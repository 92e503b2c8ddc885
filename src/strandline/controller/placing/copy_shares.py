"""How brokers that copy share the budget for copies. Pure.

Why:    a link that many leaders share is bounded by their sum, which none of them knows.
How:    A broker that copies claims again and again, and is granted a share for a while: as much as
        every other claimant, and no more than is free. A granted share counts until its end,
        whatever was granted or claimed after it. So the shares held never exceed the whole,
        whatever messages are lost or late. A new claimant waits until the others' shares end and
        are renewed as smaller ones.
            A new controller grants nothing until the last one's grants have ended. Shares are parts
        of a budget: a changed budget needs no new shares.
Owns:   the shares of each budget, on the active controller, for one epoch of it.
Source: decision 0010, "Budget"."""

from collections.abc import Collection

import msgspec

from strandline.model.ids import BrokerId

ALL, CROSS_REGION = "all", "cross-region"
TO_BROKER = "to broker "
"""The names of budgets, as clients are told them too: over all copies, over those between regions,
and, with its id behind, over those that one broker takes."""
WHOLE = 1_000_000
"""Shares are so many parts of it."""
VALID_MS = 2_000
"""For so long whoever claimed a share may use it, from when it claimed."""
HELD_MS = 3_000
"""For so long it counts as held, from when it was granted: clocks drift, and claims take time."""

_Held = dict[BrokerId, list[tuple[int, int]]]
"""{broker: [(until when, parts)]}"""


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """A broker copies for which these budgets count, by their names."""

    budgets: tuple[str, ...]


class Granted(msgspec.Struct, frozen=True, array_like=True):
    """{budget: parts of it that the broker may use}"""

    parts: dict[str, int]


class Shares:
    """See the module. `now_ms`: when its controller can have decided nothing yet."""

    def __init__(self, now_ms: int) -> None:
        self._opens_ms = now_ms + HELD_MS
        self._held: dict[str, _Held] = {}

    def claim(self, now_ms: int, broker: BrokerId, budgets: Collection[str]) -> dict[str, int]:
        """{budget: the parts that the broker may use from now on}, for each that it claims."""
        return {name: self._grant(now_ms, broker, name) for name in budgets}

    def held(self, now_ms: int) -> dict[str, dict[BrokerId, int]]:
        """{budget: {broker: parts that it was granted last}}, as far as they have not ended."""
        for name in list(self._held):
            if not self._drop(now_ms, self._held[name]):
                del self._held[name]
        return {
            name: {broker: grants[-1][1] for broker, grants in sorted(held.items())}
            for name, held in sorted(self._held.items())
        }

    def _grant(self, now_ms: int, broker: BrokerId, name: str) -> int:
        held = self._drop(now_ms, self._held.setdefault(name, {}))
        grants = held.setdefault(broker, [])
        others = [max(parts for _, parts in one) for key, one in held.items() if key != broker]
        parts = 0
        if now_ms >= self._opens_ms:
            parts = max(0, min(WHOLE // len(held), WHOLE - sum(others)))
        grants.append((now_ms + HELD_MS, parts))
        return parts

    @staticmethod
    def _drop(now_ms: int, held: _Held) -> _Held:
        """Forget what has ended."""
        for broker in list(held):
            held[broker] = [one for one in held[broker] if one[0] > now_ms]
            if not held[broker]:
                del held[broker]
        return held

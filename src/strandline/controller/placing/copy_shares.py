"""How brokers that copy share the budget for copies. Pure.

Why:    a link that many leaders share is bounded by their sum, which none of them knows.
How:    A broker that copies claims again and again, and the controller grants it a share for a
        while: as much as every other claimant, and no more than is free. A granted share counts
        until its end, whatever grants or claims follow. So the shares in use never exceed the
        whole, whatever messages are lost or late. A new claimant waits until the others' shares end
        and are renewed as smaller ones.
            A new controller grants nothing until the last one's grants have ended. Shares are parts
        of a budget: a changed budget needs no new shares.
Owns:   the shares of each budget, on the active controller, for one epoch of it.
Source: decision 0010, "Budget"."""

from collections.abc import Collection

import msgspec

from strandline.model.ids import BrokerId

ALL, CROSS_REGION = "all", "cross-region"
TO_BROKER = "to broker "
"""The names of budgets, also in answers to clients: of all copies, of copies between regions, and,
with the broker's id appended, of copies to one broker."""
WHOLE = 1_000_000
"""How many parts a budget has; shares are numbers of parts."""
VALID_MS = 2_000
"""How long the claimant may use a share, from its claim on."""
HELD_MS = 3_000
"""How long a share counts as used, from its grant on: clocks drift, and claims take time."""

_Held = dict[BrokerId, list[tuple[int, int]]]
"""{broker: [(until when, parts)]}"""


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """The claim of a broker that copies: the names of the budgets that limit it."""

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
        """{budget: {broker: parts of its last grant}}, without those that have ended."""
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
        """Drop the shares that have ended."""
        for broker in list(held):
            held[broker] = [one for one in held[broker] if one[0] > now_ms]
            if not held[broker]:
                del held[broker]
        return held

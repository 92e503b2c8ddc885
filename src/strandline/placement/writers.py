"""Decides whether a partition's leadership moves to the region that produces most. Pure.

Why:    writes are acknowledged soonest if the leader is near the producer. But each hand-over makes
        producers wait, so it must be worth it, and must not be undone soon.
How:    The bytes of each region decay by half each quarter of the period. A region that has made
        more than 60 % of them at every look for a whole period should lead; between 40 and 60 %
        nothing changes, which is the hysteresis. A leader begins with zero counts, so it stays for
        a period at least. If leadership comes back soon after it was given away, that period
        doubles each time, so oscillating producers are soon not followed. Bytes from addresses in
        no network count for no region, but in the whole: nothing moves on a guess.
Owns:   what one leader has counted, since when a region is ahead; what a broker gave away lately.
Source: decision 0014; design section 7."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from strandline.model.ids import NO_BROKER, BrokerId, GroupId

GO_RATIO = 0.6
"""The share of all bytes with which a region draws the leader."""
HALF_LIVES = 4
"""In one period."""
PERIOD_MS_MIN = 10_000
LATELY_RATIO = 8
"""What comes back within so many times what it had to wait before it left, comes back soon."""
DOUBLINGS_MAX = 6
UNKNOWN = ""
"""The region of addresses that are in no network."""

CODES = {
    "no-networks": "client.networks is empty: the places of producers are unknown",
    "idle": "no client has produced for a period, or since it leads",
    "here": "it is led where most is produced",
    "shared": "no region produces so much that leadership goes there",
    "unknown": "too much is produced from addresses that are in no network",
    "waits": "another region produces most, and not for long enough",
    "returns": "the preferred replica is in that region, and leads once it has been in sync",
    "no-voter": "no replica is in the region that produces most",
    "behind": "no replica there is in sync",
    "spared": "replicas there are on brokers that are in maintenance or leave",
    "changes": "its replicas are being moved, or its leadership is",
    "paused": "balancer.enable or auto.leader.rebalance.enable is false",
    "goes": "leadership goes to the region that produces most",
}
"""Why a leader stays, or goes."""

Hindrance = tuple[str, str]
"""A code of `CODES`, and words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a leader sees of its partition."""

    period_ms: int
    region: str
    """Where it is led."""
    preferred: str
    """The region of the first replica."""
    transfer_target_in: Callable[[str], BrokerId | Hindrance | None]
    """The broker that would lead in a region now, or why none can; None if it has no replica. For
    its own region it is the leader. Called only if the answer matters."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the leader stays, with the numbers; or the broker that should lead, which may be the
    leader itself, so that others know it is preferred."""

    code: str
    text: str
    transfer_target: BrokerId = NO_BROKER


class WriterWatch:
    """What one leader has seen since it leads; see the module. `returns`: how often in a row
    leadership came back here soon after it had left because of the writers."""

    def __init__(self, now_ms: int, *, returns: int = 0) -> None:
        self.returns = min(returns, DOUBLINGS_MAX)
        self.bytes: dict[str, float] = {}
        """{region: bytes produced, decayed}; UNKNOWN is one of them."""
        self._stepped_ms = now_ms
        self._written_ms = now_ms
        # The region that has been ahead at each look since then.
        self._ahead = UNKNOWN
        self._since_ms = now_ms

    def wait_ms(self, period_ms: int) -> int:
        """For how long a region has to be ahead."""
        return period_ms << self.returns

    def shares(self) -> dict[str, float]:
        """{region: what part of all bytes it made}, the most first."""
        total = sum(self.bytes.values())
        if not total:
            return {}
        found = sorted(self.bytes.items(), key=lambda one: (-one[1], one[0]))
        return {region: count / total for region, count in found}

    def is_ahead(self, region: str) -> bool:
        """Whether the last look saw this region ahead."""
        return region == self._ahead != UNKNOWN

    def step(self, now_ms: int, produced: Mapping[str, int], sight: Sight) -> Verdict:
        """Take in what was produced since the last look: {region: bytes}."""
        self._count(now_ms, produced, sight.period_ms)
        shares = self.shares()
        if not shares:
            is_long = now_ms - self._written_ms >= sight.period_ms
            since = f"for {_seconds(sight.period_ms)}" if is_long else "since it leads"
            return Verdict("idle", f"no client has produced {since}")
        known = [region for region in shares if region != UNKNOWN]
        most = known[0] if known else UNKNOWN
        ahead = most if shares[most] > GO_RATIO else UNKNOWN
        if ahead != self._ahead:
            self._ahead, self._since_ms = ahead, now_ms
        if ahead == UNKNOWN:
            return _none_ahead(most, shares, sight)
        reason = f"{ahead} produces {_percent(shares[ahead])}"
        if ahead == sight.region == sight.preferred:
            return Verdict("here", reason)
        return self._judge(now_ms, reason, sight)

    def _count(self, now_ms: int, produced: Mapping[str, int], period_ms: int) -> None:
        gone_ms, self._stepped_ms = now_ms - self._stepped_ms, now_ms
        keep = 0.5 ** (gone_ms * HALF_LIVES / period_ms)
        counts = {region: count * keep for region, count in self.bytes.items()}
        for region, count in produced.items():
            counts[region] = counts.get(region, 0) + count
        if any(produced.values()):
            self._written_ms = now_ms
        is_idle = now_ms - self._written_ms >= period_ms
        self.bytes = {} if is_idle else {one: count for one, count in counts.items() if count >= 1}
        if not self.bytes:
            self._ahead = UNKNOWN

    def _judge(self, now_ms: int, reason: str, sight: Sight) -> Verdict:
        """Of a region that is ahead."""
        is_own = self._ahead == sight.region  # Then only the order changes, without a wait.
        wait_ms = sight.period_ms if is_own else self.wait_ms(sight.period_ms)
        waited_ms = now_ms - self._since_ms
        if waited_ms < wait_ms:
            text = f"{reason}, for {_seconds(waited_ms)} of {_seconds(wait_ms)}"
            if self.returns and not is_own:
                times = "once" if self.returns == 1 else f"{self.returns} times"
                text += f"; leadership has come back {times} soon after it left"
            return Verdict("waits", text)
        if sight.preferred == self._ahead:
            return Verdict(
                "returns", f"{reason}; leadership returns to the preferred replica there"
            )
        transfer_target = sight.transfer_target_in(self._ahead)
        if transfer_target is None:
            return Verdict("no-voter", f"{reason}, and no replica is there")
        if isinstance(transfer_target, tuple):
            return Verdict(transfer_target[0], f"{reason}; {transfer_target[1]}")
        return Verdict(
            "goes", f"{reason}; broker {transfer_target} is to lead from now on", transfer_target
        )


def _none_ahead(most: str, shares: Mapping[str, float], sight: Sight) -> Verdict:
    unknown = shares.get(UNKNOWN, 0)
    parts = [f"{most} produces {_percent(shares[most])}"] if most != UNKNOWN else []
    if unknown:
        parts.append(f"{_percent(unknown)} comes from addresses in no network of client.networks")
    text = ", ".join(parts)
    if unknown >= 1 - GO_RATIO:
        return Verdict("unknown", text)
    if most == sight.region:
        return Verdict("here", text)
    needed = f"leadership goes to a region that produces more than {_percent(GO_RATIO)}"
    return Verdict("shared", f"{text}; {needed} for {_seconds(sight.period_ms)}")


@dataclass(frozen=True, slots=True)
class _Departure:
    at_ms: int
    wait_ms: int
    returns: int


@dataclass(slots=True)
class Departures:
    """What a broker gave away because of the writers, as long as it matters."""

    _known: dict[GroupId, _Departure] = field(default_factory=dict)

    def note(self, group: GroupId, now_ms: int, *, wait_ms: int, returns: int) -> None:
        """Leadership goes, after so long a wait."""
        self._known[group] = _Departure(now_ms, wait_ms, returns)

    def returns(self, group: GroupId, now_ms: int) -> int:
        """This broker leads the group from now on: how often in a row it came back soon."""
        self.forget(now_ms)
        last = self._known.get(group)
        return 0 if last is None else last.returns + 1

    def forget(self, now_ms: int) -> None:
        """Drop old samples."""
        for group, one in list(self._known.items()):
            if now_ms - one.at_ms > LATELY_RATIO * one.wait_ms:
                del self._known[group]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1_000:.0f} s"

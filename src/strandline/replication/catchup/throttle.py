"""Limits how fast followers are served from the log.

Why:    a follower that was away for an hour needs gigabytes. Producers must not notice.
How:    each append read from the log needs bytes in its buckets, and waits its turn; so all
        recovering groups share the rate equally. A read counts against
        - the near bucket, or the far one for other regions; near also if a peer near the follower
          sends the entries (`fetch_sources`);
        - for copies to future replicas, the cluster's limits (`CopyLimits`), too. At a limit of 0
          they wait for a new one.
            Records appended meanwhile come on top (`FollowerStream.allowance_bytes`): otherwise a
        fast producer would leave the follower behind for ever.
Owns:   the buckets and the turns; one per broker.
Source: design section 5 ("one recovery reader, throttled"); Redpanda's throttle; KIP-73."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from strandline.base.clock import Clock, Timer
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.catchup.token_bucket import TokenBucket

COPYING_MS = 2_000
"""A broker counts as copied to for this long after a copy to it last asked to read."""

Reader = tuple[GroupId, BrokerId]
"""The group whose log is read, and the broker that receives the entries."""
TokenBuckets = tuple[TokenBucket, ...]
"""The buckets that one read counts against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Bytes/s that this broker's copies to new replicas may use; None: only the configured rate
    limits them. `far`: copies to other regions; `to`: {broker: copies to it}."""

    every: int | None = None
    far: int | None = None
    to: Mapping[BrokerId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Turn:
    """One waiter: how it goes on, and the buckets it waits for."""

    go_on: Callable[[], None]
    is_copy: bool
    is_by_peer: bool
    token_buckets: TokenBuckets


class RecoveryThrottle:
    """See the module."""

    def __init__(self, clock: Clock, *, bytes_per_s: int, cross_region_bytes_per_s: int) -> None:
        self._clock = clock
        now = clock.monotonic_ms()
        self._near = TokenBucket(now, bytes_per_s)
        self._far = TokenBucket(now, cross_region_bytes_per_s)
        self._far_peers: frozenset[BrokerId] = frozenset()
        # {"every", "far" or a broker: the bucket that copies count against, too}
        self._limits: dict[str | BrokerId, TokenBucket] = {}
        # {reader: its turn}, first come first served; {buckets: how many wait for them}.
        self._waiting: dict[Reader, _Turn] = {}
        self._alike: Counter[TokenBuckets] = Counter()
        # The reader whose turn it is at this moment.
        self._admitted: Reader | None = None
        self._timer: Timer | None = None
        # {broker: when a copy to it last asked to read}; the second of bytes that leave from here.
        self._copied_ms: dict[BrokerId, int] = {}
        self._copied_far_ms: dict[BrokerId, int] = {}

    @property
    def waiting_count(self) -> int:
        """How many readers wait for their turn."""
        return len(self._waiting)

    # ---- limits ----------------------------------------------------------------------------------

    def place(self, far_peers: Iterable[BrokerId]) -> None:
        """Set which brokers are in other regions."""
        self._far_peers = frozenset(far_peers)
        self._recompute_buckets()

    def limit_copies(self, limits: CopyLimits) -> None:
        """Set the limits of copies, also of those under way."""
        wanted: dict[str | BrokerId, int | None] = {"every": limits.every, "far": limits.far}
        wanted.update(limits.to.items())
        now = self._clock.monotonic_ms()
        for name, rate in wanted.items():
            if rate is not None and name in self._limits:
                self._limits[name].change_rate(now, rate)
            elif rate is not None:
                self._limits[name] = TokenBucket(now, rate)
        for name in [one for one in self._limits if wanted.get(one) is None]:
            del self._limits[name]
        self._recompute_buckets()

    def copying_to(self) -> tuple[frozenset[BrokerId], frozenset[BrokerId]]:
        """(the brokers that copies go to, those of them in other regions to which this broker sends
        the bytes itself)."""
        now = self._clock.monotonic_ms()
        for copied in (self._copied_ms, self._copied_far_ms):
            for peer in [one for one, at in copied.items() if now - at > COPYING_MS]:
                del copied[peer]
        waiting = [(peer, turn) for (_, peer), turn in self._waiting.items() if turn.is_copy]
        far = {peer for peer, turn in waiting if not turn.is_by_peer} | self._copied_far_ms.keys()
        peers = frozenset({peer for peer, _ in waiting} | self._copied_ms.keys())
        return peers, self._far_peers & far

    # ---- turns -----------------------------------------------------------------------------------

    def admits(
        self,
        reader: Reader,
        go_on: Callable[[], None],
        *,
        is_copy: bool = False,
        is_by_peer: bool = False,
    ) -> bool:
        """Whether one append may be read now; if not, `go_on` is called when it may.

        `is_by_peer`: a peer near the receiver sends the bytes, not this broker."""
        if is_copy:
            now = self._clock.monotonic_ms()
            self._copied_ms[reader[1]] = now
            if not is_by_peer:
                self._copied_far_ms[reader[1]] = now
        if self._admitted == reader:
            self._admitted = None
            return True
        token_buckets = self._token_buckets(reader[1], is_copy=is_copy, is_by_peer=is_by_peer)
        if (
            self._admitted is None
            and self._have_bytes(token_buckets)
            and not self._is_preceded(token_buckets)
        ):
            return True
        self._leave(self._waiting.get(reader))
        # It keeps its turn, with the latest callback: another leader state may ask by now.
        self._waiting[reader] = _Turn(go_on, is_copy, is_by_peer, token_buckets)
        self._alike[token_buckets] += 1
        self._wake_later()
        return False

    def spend(
        self, peer: BrokerId, count: int, *, is_copy: bool = False, is_by_peer: bool = False
    ) -> None:
        """Take `count` bytes that were read for `peer`."""
        for bucket in self._token_buckets(peer, is_copy=is_copy, is_by_peer=is_by_peer):
            bucket.spend(count)

    def append_bytes_max(self, peer: BrokerId, *, is_by_peer: bool = False) -> int | None:
        """The largest append that a copy to `peer` should read at once; None: no limit."""
        limits = self._limits_of(peer, is_by_peer=is_by_peer)
        return min(one.burst_bytes for one in limits) if limits else None

    def is_halted(self, peer: BrokerId, *, is_by_peer: bool = False) -> bool:
        """Whether a limit of 0 stops all copies to `peer`."""
        return any(not one.bytes_per_s for one in self._limits_of(peer, is_by_peer=is_by_peer))

    def stop(self) -> None:
        """Drop all waiters; calls none of them."""
        self._waiting.clear()
        self._alike.clear()
        self._cancel()

    def _token_buckets(self, peer: BrokerId, *, is_copy: bool, is_by_peer: bool) -> TokenBuckets:
        own = self._far if peer in self._far_peers and not is_by_peer else self._near
        return (own, *self._limits_of(peer, is_by_peer=is_by_peer)) if is_copy else (own,)

    def _limits_of(self, peer: BrokerId, *, is_by_peer: bool) -> TokenBuckets:
        if not self._limits:
            return ()
        is_far = peer in self._far_peers and not is_by_peer
        names = ("every", "far", peer) if is_far else ("every", peer)
        return tuple(self._limits[one] for one in names if one in self._limits)

    def _have_bytes(self, token_buckets: TokenBuckets) -> bool:
        now = self._clock.monotonic_ms()
        return all(one.has_bytes(now) for one in token_buckets)

    def _is_preceded(self, token_buckets: TokenBuckets) -> bool:
        """Whether an earlier waiter that may read now needs one of these buckets, too."""
        return any(
            not set(token_buckets).isdisjoint(others) and self._have_bytes(others)
            for others in self._alike
        )

    def _leave(self, turn: _Turn | None) -> None:
        """Remove a waiter from the count of its buckets."""
        if turn is not None:
            assert self._alike[turn.token_buckets] > 0, "each waiter is counted by its buckets"
            self._alike[turn.token_buckets] -= 1
            if not self._alike[turn.token_buckets]:
                del self._alike[turn.token_buckets]

    def _recompute_buckets(self) -> None:
        """Recompute the buckets of every waiter: limits or regions have changed."""
        self._waiting = {
            reader: replace(
                turn,
                token_buckets=self._token_buckets(
                    reader[1], is_copy=turn.is_copy, is_by_peer=turn.is_by_peer
                ),
            )
            for reader, turn in self._waiting.items()
        }
        self._alike = Counter(turn.token_buckets for turn in self._waiting.values())
        self._cancel()
        if self._waiting:
            self._wake_later()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake_later(self) -> None:
        if self._timer is not None:
            return
        delays = []
        now = self._clock.monotonic_ms()
        for token_buckets in self._alike:
            waits = [one.wait_ms(now) for one in token_buckets]
            known = [one for one in waits if one is not None]
            if len(known) == len(waits):
                delays.append(max(known))
        if delays:
            self._timer = self._clock.call_later(min(delays), self._wake)

    def _wake(self) -> None:
        self._timer = None
        while (reader := self._next()) is not None:
            turn = self._waiting.pop(reader)
            self._leave(turn)
            self._admitted = reader
            turn.go_on()
            self._admitted = None
        if self._waiting:
            self._wake_later()

    def _next(self) -> Reader | None:
        """The first waiter that may read now, if any."""
        spent: set[TokenBuckets] = set()
        for reader, turn in self._waiting.items():
            if turn.token_buckets not in spent:
                if self._have_bytes(turn.token_buckets):
                    return reader
                spent.add(turn.token_buckets)
                if len(spent) == len(self._alike):
                    break
        return None

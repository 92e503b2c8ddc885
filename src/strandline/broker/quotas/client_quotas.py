"""The quotas of each client, by the controller's log, and what is used of them on this broker.

Why:    one greedy client may not slow down the others, and a client without a quota costs nothing.
How:    A client is a user with a client id. What applies to it is looked up once, and again after
        the controller's log has changed what principals may do. Clients that share a quota share
        its `Usage`.
            produce   counts the bytes of a request when it is taken in
            fetch     counts the bytes of an answer; a client that is over already gets none
            request   counts the time of the event loop: 100 percent is all of it
            remote    counts bytes that cross regions (`crossings`)
            mutation  counts partitions that are made and removed (`mutations`)
        Logins have no quota: they come before there is a principal.
Owns:   the usage of each quota, within USAGES_MAX. What is idle is forgotten first.
Source: Kafka 4.3's ClientQuotaManager and ClientRequestQuotaManager; KIP-13, KIP-124, KIP-219;
        decision 0070."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Protocol, TypeVar

from strandline.base.clock import Clock
from strandline.model.cluster import Cluster
from strandline.protocol.apis import API_KEYS, Api
from strandline.security.quotas.entities import NAME_LENGTH_MAX
from strandline.security.quotas.keys import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    QUOTA_KEYS,
    REMOTE_REGION_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from strandline.security.quotas.precedence import Sharers, applicable
from strandline.security.quotas.token_budget import TokenBudget
from strandline.security.quotas.windows import Usage
from strandline.security.session import Session

PRODUCE_KEY, FETCH_KEY = API_KEYS["Produce"], API_KEYS["Fetch"]
EXEMPT_KEYS = frozenset(
    API_KEYS[name] for name in ("SaslHandshake", "SaslAuthenticate", "IsolateBroker")
)
"""Logins, and the request that ends a drill."""
USAGES_MAX = 10_000
"""Quotas whose usage is kept: at most about 3 KB each."""
CLIENTS_MAX = 10_000
"""Pairs of user and client id whose quotas are remembered."""
CLIENT_ID_LENGTH_MAX = NAME_LENGTH_MAX + 1
"""Characters of a client id that count. No quota has a longer name, so only defaults are for longer
ones, and what is remembered of 10,000 stays small."""
PERCENT_PER_NS = 100 / 1_000_000_000
PRODUCE, FETCH, REQUEST, REMOTE = "produce", "fetch", "request", "remote"
MUTATION = "mutation"
KINDS = {
    PRODUCE: PRODUCER_BYTE_RATE,
    FETCH: CONSUMER_BYTE_RATE,
    REQUEST: REQUEST_PERCENTAGE,
    REMOTE: REMOTE_REGION_BYTE_RATE,
}
"""{kind of throttling: its quota}"""
THROTTLED_KINDS = (*KINDS, MUTATION)
"""The labels of metrics."""


K = TypeVar("K", bound=Hashable)
T = TypeVar("T", Usage, TokenBudget)


class Mutable(Protocol):
    """What quotas need of a connection."""

    def mute(self, duration_ms: int) -> None:
        """Take no further request for so long."""


class LimitedRequest(Protocol):
    """What quotas need of a request; see `context.RequestContext`."""

    client_id: str | None
    size_bytes: int
    limits: ClientLimits | None
    throttle_ms: int
    is_remote: bool

    @property
    def api(self) -> Api: ...

    @property
    def session(self) -> Session: ...

    @property
    def sink(self) -> Mutable: ...


class ClientLimits:
    """The quotas of one client, until quotas change; None where it has none."""

    __slots__ = ("_quotas", "_spent_ns", "fetch", "mutations", "produce", "remote", "request")

    def __init__(
        self,
        quotas: ClientQuotas,
        *,
        produce: Usage | None,
        fetch: Usage | None,
        request: Usage | None,
        remote: Usage | None,
        mutations: TokenBudget | None,
    ) -> None:
        self._quotas = quotas
        # The loop's time that is not charged yet.
        self._spent_ns = 0
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.remote = remote
        self.mutations = mutations

    def admit(self, context: LimitedRequest) -> None:
        """A request is taken in."""
        key, now_ms = context.api.key, self._quotas.now_ms()
        if self.produce is not None and key == PRODUCE_KEY:
            self.produce.note(context.size_bytes, now_ms)
            self._throttle(context, PRODUCE, self.produce.throttle_ms(now_ms))
        if self.fetch is not None and key == FETCH_KEY:
            self._throttle(context, FETCH, self.fetch.throttle_ms(now_ms))
        if self.request is not None:
            self._throttle(context, REQUEST, self.request.throttle_ms(now_ms))

    def note_fetched(self, context: LimitedRequest, size_bytes: int) -> None:
        """An answer to a fetch is about to leave."""
        if context.is_remote:
            self.note_crossed(context, size_bytes)
        if self.fetch is not None:
            now_ms = self._quotas.now_ms()
            self.fetch.note(size_bytes, now_ms)
            self._throttle(context, FETCH, self.fetch.throttle_ms(now_ms))

    def note_crossed(self, context: LimitedRequest, size_bytes: int) -> None:
        """Bytes cross regions for the client."""
        if self.remote is not None:
            now_ms = self._quotas.now_ms()
            if size_bytes:
                self.remote.note(size_bytes, now_ms)
            self._throttle(context, REMOTE, self.remote.throttle_ms(now_ms))

    def fetch_bytes_max(self, context: LimitedRequest) -> float:
        """How many bytes of records an answer to a fetch may have."""
        now_ms = self._quotas.now_ms()
        room = float("inf") if self.fetch is None else self.fetch.room(now_ms)
        if self.remote is not None and context.is_remote:
            room = min(room, self.remote.room(now_ms))
        return room

    def spend_mutations(self, context: LimitedRequest, count: int, *, is_strict: bool) -> bool:
        """Take the tokens for `count` partitions; False, and nothing is taken, if the client is in
        debt and `is_strict`."""
        if self.mutations is None:
            return True
        now_ms = self._quotas.now_ms()
        is_refused = is_strict and self.mutations.wait_ms(now_ms) > 0
        if not is_refused:
            self.mutations.spend(count, now_ms)
        if is_refused or not is_strict:
            longest_ms = QUOTA_KEYS[CONTROLLER_MUTATION_RATE].throttle_ms_max
            wait_ms = self.mutations.wait_ms(now_ms)
            self._throttle(context, MUTATION, min(wait_ms, longest_ms))
        return not is_refused

    def charge(self, context: LimitedRequest, begin_ns: int) -> None:
        """The loop has worked for a request from then until now."""
        if self.request is not None:
            now_ms = self._quotas.now_ms()
            spent_ns = self._spent_ns + self._quotas.now_ns() - begin_ns
            self._spent_ns = 0
            self.request.note(spent_ns * PERCENT_PER_NS, now_ms)
            self._throttle(context, REQUEST, self.request.throttle_ms(now_ms))

    def note_time(self, begin_ns: int) -> None:
        """The loop has worked for the client from then until now: its next request is charged."""
        self._spent_ns += self._quotas.now_ns() - begin_ns

    def now_ns(self) -> int:
        """The clock of `charge` and `note_time`."""
        return self._quotas.now_ns()

    def _throttle(self, context: LimitedRequest, kind: str, throttle_ms: int) -> None:
        """Have the answer tell it, if it is not on its way, and mute the connection."""
        if throttle_ms > context.throttle_ms:
            quotas = self._quotas
            quotas.throttled_count[kind] += not context.throttle_ms
            quotas.throttled_ms[kind] += throttle_ms - context.throttle_ms
            context.throttle_ms = throttle_ms
            context.sink.mute(throttle_ms)


class ClientQuotas:
    """See the module. `now_ns`: a clock for short times."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        now_ns: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.now_ns = now_ns
        self.throttled_count: Counter[str] = Counter()
        """{kind: requests that were throttled}"""
        self.throttled_ms: Counter[str] = Counter()
        """{kind: for how long they were}"""
        self._cluster = cluster
        self._clock = clock
        # The version of access that `_clients` is of.
        self._seen = -1
        self._clients: dict[tuple[str, str], ClientLimits | None] = {}
        self._usages: dict[tuple[str, Sharers], Usage] = {}
        self._budgets: dict[Sharers, TokenBudget] = {}

    def now_ms(self) -> int:
        """Monotonic time."""
        return self._clock.monotonic_ms()

    def admit(self, context: LimitedRequest) -> None:
        """A request is taken in, and the cluster has quotas."""
        session = context.session
        if context.api.key in EXEMPT_KEYS or not session.is_authenticated:
            return
        client_id = (context.client_id or "")[:CLIENT_ID_LENGTH_MAX]
        limits = self.limits_of(session.principal.name, client_id)
        if limits is not None:
            context.limits = limits
            limits.admit(context)

    def limits_of(self, user: str, client_id: str) -> ClientLimits | None:
        """The quotas of a client; None if it has none."""
        access, clients = self._cluster.access, self._clients
        if access.version != self._seen or len(clients) >= CLIENTS_MAX:
            self._seen = access.version
            clients.clear()
        client = (user, client_id)
        try:
            return clients[client]
        except KeyError:
            found = {kind: self._usage(key, user, client_id) for kind, key in KINDS.items()}
            mutations = self._budget(user, client_id)
            limits = None
            if mutations is not None or any(found.values()):
                limits = ClientLimits(self, **found, mutations=mutations)
            clients[client] = limits
            return limits

    def _budget(self, user: str, client_id: str) -> TokenBudget | None:
        quotas, now_ms = self._cluster.access.quotas, self.now_ms()
        quota = applicable(quotas, CONTROLLER_MUTATION_RATE, user=user, client_id=client_id)
        if quota is None:
            return None
        budget = self._budgets.get(quota.sharers)
        if budget is not None:
            budget.set_limit(quota.value, now_ms)
            return budget
        if len(self._budgets) >= USAGES_MAX:
            self._budgets = _kept(self._budgets, now_ms)
            self._clients.clear()
        made = self._budgets[quota.sharers] = TokenBudget(quota.value, now_ms=now_ms)
        return made

    def _usage(self, key: str, user: str, client_id: str) -> Usage | None:
        quotas, now_ms = self._cluster.access.quotas, self.now_ms()
        quota = applicable(quotas, key, user=user, client_id=client_id)
        if quota is None:
            return None
        usage = self._usages.get((key, quota.sharers))
        if usage is not None:
            usage.set_limit(quota.value)
            return usage
        if len(self._usages) >= USAGES_MAX:
            self._forget_idle(now_ms)
        made = Usage(quota.value, throttle_ms_max=QUOTA_KEYS[key].throttle_ms_max, now_ms=now_ms)
        self._usages[key, quota.sharers] = made
        return made

    def _forget_idle(self, now_ms: int) -> None:
        """Forget what is idle; if that is too little, the half that was used longest ago."""
        self._usages = _kept(self._usages, now_ms)
        self._clients.clear()


def _kept(all_: dict[K, T], now_ms: int) -> dict[K, T]:
    """Those that are not idle, at most the half of USAGES_MAX that was used last."""
    kept = {key: one for key, one in all_.items() if not one.is_idle(now_ms)}
    if len(kept) > USAGES_MAX // 2:
        newest = sorted(kept, key=lambda key: kept[key].used_ms)[-USAGES_MAX // 2 :]
        kept = {key: kept[key] for key in newest}
    return kept

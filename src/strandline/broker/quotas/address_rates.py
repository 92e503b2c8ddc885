"""How many connections a second an address may open: quotas of addresses.

Why:    programs that connect again and again cost a handshake or a login each.
How:    an address has its own quota, or the default one. A connection beyond it is not served: the
        server closes it after a delay, so that the client does not come again at once.
Owns:   the rates, within ADDRESSES_MAX. The one that was used longest ago is forgotten first.
Source: KIP-612; Kafka 4.3's ConnectionQuotas; decision 0070."""

from collections import OrderedDict

from strandline.base.clock import Clock
from strandline.model.cluster import Cluster
from strandline.model.networks import canonical_host
from strandline.security.quotas.keys import CONNECTION_CREATION_RATE, IP, QUOTA_KEYS
from strandline.security.quotas.windows import Usage

ADDRESSES_MAX = 10_000
"""Addresses whose rates are kept: at most about 3 KB each."""


class AddressRates:
    """See the module."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._seen = -1
        # {address: its quota}; None for the default one.
        self._limits: dict[str | None, float] = {}
        self._usages: OrderedDict[str, Usage] = OrderedDict()

    def delay_ms(self, host: str) -> int:
        """A client of this address has connected: 0 if it may stay, else how long its end is
        delayed. `host` is an IP address."""
        access = self._cluster.access
        if access.version != self._seen:
            self._seen = access.version
            self._read()
        if not self._limits:
            return 0
        address, now_ms = canonical_host(host), self._clock.monotonic_ms()
        limit = self._limits.get(address, self._limits.get(None))
        if limit is None:
            return 0
        usage = self._usages.pop(address, None)
        if usage is None:
            longest_ms = QUOTA_KEYS[CONNECTION_CREATION_RATE].throttle_ms_max
            usage = Usage(limit, throttle_ms_max=longest_ms, now_ms=now_ms)
            if len(self._usages) >= ADDRESSES_MAX:
                self._usages.popitem(last=False)
        self._usages[address] = usage
        usage.set_limit(limit)
        delay_ms = usage.throttle_ms(now_ms)
        if not delay_ms:
            usage.note(1, now_ms)
        return delay_ms

    def _read(self) -> None:
        self._limits = {}
        for entity, values in self._cluster.access.quotas.items():
            if CONNECTION_CREATION_RATE in values and entity[0][0] == IP:
                name = entity[0][1]
                address = None if name is None else canonical_host(name)
                self._limits[address] = values[CONNECTION_CREATION_RATE]

"""Keeps copies to new replicas within the budgets of the cluster and of single brokers.

Why:    each leader's broker throttles its own copies; a budget of the cluster is shared by all.
How:    While a budget is set and this broker copies, it claims a share from the controller each
        half second (`placing.copy_shares`), and copies at that share of the budget. Without a
        share it copies nothing. A changed budget applies at once, at the same share.
            The budget of what one broker may receive is shared by the brokers that copy to it. Each
        broker keeps to its own limit of what it may send. The active controller grants the shares.
Owns:   the shares granted to this broker; all shares, on the controller.
Source: decision 0010, "Budget"; KIP-73."""

import logging
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

import msgspec

from strandline.base.clock import Clock
from strandline.base.errors import ApiError, ProtocolError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.config.broker_life import SENT_RATE, TAKEN_RATE, BrokerLife
from strandline.config.cluster import ClusterConfig
from strandline.config.keys import LONG_MAX
from strandline.controller.placing.copy_shares import (
    ALL,
    CROSS_REGION,
    TO_BROKER,
    VALID_MS,
    WHOLE,
    Claim,
    Granted,
    Shares,
)
from strandline.controller.records import (
    BrokerRegistered,
    BrokerUnregistered,
    ConfigsChanged,
    Record,
)
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.network.calls import CallError
from strandline.protocol.errors import Error
from strandline.replication.catchup.throttle import CopyLimits
from strandline.replication.host.replication import Replication

METHOD = "moves.share"
LOOK_INTERVAL_MS = 250
CLAIM_INTERVAL_MS = 500
CALL_TIMEOUT_MS = 1_000

_log = logging.getLogger("strandline.broker")


@dataclass(slots=True)
class Budget:
    """The rate that all copies under this budget share. `shares`: {broker: its parts of
    `copy_shares.WHOLE`}, on the controller that grants them."""

    name: str
    bytes_per_s: int
    shares: dict[BrokerId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Share:
    parts: int
    until_ms: int


class CopyBudget:
    """See the module."""

    def __init__(
        self, *, clock: Clock, replication: Replication, controller: ControllerHost
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._controller = controller
        # {name: bytes/s}, of the budgets that are set; {name: the broker that is copied to}.
        self._budgets: dict[str, int] = {}
        self._takers: dict[str, BrokerId] = {}
        self._sent_rate: int | None = None
        self._shares: dict[str, _Share] = {}
        self._claimed_ms = -CLAIM_INTERVAL_MS
        self._asking = SingleFlight()
        self._ticker = Ticker(
            clock,
            self._look,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot update the budgets of copies",
        )
        # The shares granted here, and the epoch of the controller in which.
        self._granted: tuple[int, Shares] | None = None
        self._decoder = msgspec.msgpack.Decoder(Claim)
        self._answers = msgspec.msgpack.Decoder(Granted)
        replication.calls.register(METHOD, self._on_call)
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)

    def stop(self) -> None:
        """Claim no more shares."""
        self._ticker.stop()
        self._asking.stop()

    def budgets(self) -> list[Budget]:
        """The budgets that are set; on the active controller with the shares of each broker."""
        shares = {}
        if self._controller.is_active:
            shares = self._ledger().held(self._clock.monotonic_ms())
        return [Budget(name, rate, shares.get(name, {})) for name, rate in self._budgets.items()]

    # ---- here ------------------------------------------------------------------------------------

    def _on_applied(self, record: Record) -> None:
        is_config = isinstance(record, ConfigsChanged) and record.scope != "topic"
        if not is_config and not isinstance(record, BrokerRegistered | BrokerUnregistered):
            return
        self._look_again()

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        self._look_again()

    def _look_again(self) -> None:
        cluster = self._controller.cluster
        config = ClusterConfig.from_values(cluster.cluster_configs)
        configured = {
            ALL: config.moves_bytes_per_s,
            CROSS_REGION: config.moves_cross_region_bytes_per_s,
        }
        budgets = {name: rate for name, rate in configured.items() if rate >= 0}
        self._takers = {}
        for broker in sorted(cluster.brokers):
            rate = self._rate_of(broker, TAKEN_RATE)
            if rate < LONG_MAX:
                self._takers[f"{TO_BROKER}{broker}"] = broker
                budgets[f"{TO_BROKER}{broker}"] = rate
        own = self._rate_of(self._replication.self_id, SENT_RATE)
        self._budgets, self._sent_rate = budgets, own if own < LONG_MAX else None
        self._limit()
        if budgets and not self._ticker.is_running:
            self._ticker.start()
        elif not budgets:
            self._ticker.stop()

    def _rate_of(self, broker: BrokerId, name: str) -> int:
        """The rate that is set for the broker, or for all brokers."""
        cluster = self._controller.cluster
        values = {**cluster.cluster_configs, **cluster.broker_configs.get(broker, {})}
        life = BrokerLife.from_values({name: values[name]} if name in values else {})
        if name == SENT_RATE:
            return life.leader_replication_throttled_rate
        return life.follower_replication_throttled_rate

    def _limit(self) -> None:
        """Limit copies to this broker's shares of the budgets."""
        now = self._clock.monotonic_ms()
        self._shares = {
            name: share
            for name, share in self._shares.items()
            if now < share.until_ms and name in self._budgets
        }
        rates = {
            name: rate * self._shares[name].parts // WHOLE if name in self._shares else 0
            for name, rate in self._budgets.items()
        }
        every = [one for one in (self._sent_rate, rates.get(ALL)) if one is not None]
        self._replication.throttle.limit_copies(
            CopyLimits(
                every=min(every, default=None),
                far=rates.get(CROSS_REGION),
                to={broker: rates[name] for name, broker in self._takers.items()},
            )
        )

    def _look(self) -> None:
        if self._controller.is_active:
            self._ledger()
        self._limit()
        peers, far = self._replication.throttle.copying_to()
        wanted = {ALL: peers, CROSS_REGION: far}
        wanted |= {name: peers & {broker} for name, broker in self._takers.items()}
        names = tuple(name for name in self._budgets if wanted[name])
        now = self._clock.monotonic_ms()
        is_due = now - self._claimed_ms >= CLAIM_INTERVAL_MS
        if names and is_due and not self._asking.is_under_way:
            self._claimed_ms = now
            self._asking.begin(partial(self._claim, Claim(names), now))

    async def _claim(self, claim: Claim, now: int) -> None:
        controller = self._controller.leader_id
        try:
            if controller == self._replication.self_id:
                granted = self._grant(controller, claim)
            elif controller != NO_BROKER:
                payload = await self._replication.calls.call(
                    controller, METHOD, msgspec.msgpack.encode(claim), timeout_ms=CALL_TIMEOUT_MS
                )
                granted = self._answers.decode(payload)
            else:
                return
        except (ApiError, CallError, msgspec.MsgspecError) as error:
            _log.info("no share of the copy budget, trying again: %s", error)
            return
        for name, parts in granted.parts.items():
            self._shares[name] = _Share(parts, now + VALID_MS)
        self._limit()

    # ---- on the controller -----------------------------------------------------------------------

    async def _on_call(self, sender: BrokerId, payload: bytes) -> bytes:
        try:
            claim = self._decoder.decode(payload)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} sent an unreadable claim") from error
        return msgspec.msgpack.encode(self._grant(sender, claim))

    def _grant(self, broker: BrokerId, claim: Claim) -> Granted:
        """Raises ApiError if this broker is not the controller."""
        if not self._controller.is_active:
            raise ApiError(Error.NOT_CONTROLLER, "this broker is not the controller")
        now = self._clock.monotonic_ms()
        return Granted(self._ledger().claim(now, broker, claim.budgets))

    def _ledger(self) -> Shares:
        """The shares of this epoch; the shares of earlier epochs have to expire first."""
        epoch = self._controller.epoch
        if self._granted is None or self._granted[0] != epoch:
            self._granted = epoch, Shares(self._clock.monotonic_ms())
        return self._granted[1]

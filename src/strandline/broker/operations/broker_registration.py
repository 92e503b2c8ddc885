"""Introduces this broker to the seeds and voters, and notices that it was unregistered.

Why:    a voter can answer only a broker whose address it knows. It knows the voters and the
        registered brokers, and a new broker is neither. A broker that was unregistered while it
        was cut off gets no more messages that say so.
How:    Until it is registered, the broker sends its address to every seed periodically. The seed
        connects back, if it does not know the broker or cannot reach it at its earlier address (its
        disk was put into another machine), and answers. Seeds have each other's addresses in their
        configuration, and send their own only if that does not help for a while.
            The seeds are a list to begin with: their answer names the controller's present voters,
        and the broker introduces itself to these, too.
            Later the broker asks again when it hears no controller, after its process stood still,
        and once a minute: the others go on sending to a seed, which then hears them although it is
        unregistered. If another broker has a newer state that does not contain this broker, the
        broker is unregistered.
Owns:   nothing.
Source: design section 3; decision 0011."""

import asyncio
import logging

import msgspec

from strandline.base.errors import ProtocolError
from strandline.base.network import Lane
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.config.broker import BrokerConfig
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.network.calls import CallError
from strandline.replication.host.replication import Replication

METHOD = "broker.introduce"
CALL_TIMEOUT_MS = 1_000
INTRODUCE_INTERVAL_MS = 300
CLASHES_TOLD_MAX = 1_000
WATCH_INTERVAL_MS = 5_000
CHECK_INTERVAL_MS = 60_000
"""Between two questions of a broker that hears the controller."""

_log = logging.getLogger("strandline.broker")


class BrokerRegistration(msgspec.Struct, frozen=True, array_like=True):
    """Where the sender listens for other brokers."""

    host: str
    port: int


class VoterAddress(msgspec.Struct, frozen=True, array_like=True):
    """A voter of the controller, and where it listens for other brokers."""

    broker: BrokerId
    host: str
    port: int


class RegistrationStatus(msgspec.Struct, frozen=True, array_like=True):
    """Whether the sender is registered in the cluster of this version. `voters`: as far as the
    answering broker knows them and their addresses; none from earlier releases."""

    version: int
    is_registered: bool
    voters: tuple[VoterAddress, ...] = ()


def answer_introductions(replication: Replication, controller: ControllerHost) -> None:
    """Serve introductions: learn the addresses of brokers."""
    clashes: set[tuple[BrokerId, Address]] = set()

    async def on_call(sender: BrokerId, payload: bytes) -> bytes:
        try:
            sender_address = msgspec.msgpack.decode(payload, type=BrokerRegistration)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} sent an unreadable introduction") from error
        is_reached = replication.network.is_connected(sender, Lane.CONTROL)
        if sender not in replication.peers or not is_reached:
            _log.info(
                "broker %d introduced itself from %s:%d",
                sender,
                sender_address.host,
                sender_address.port,
            )
            replication.set_peer(sender, sender_address.host, sender_address.port)
        known = controller.cluster
        own = known.brokers.get(sender)
        second = Address(sender_address.host, sender_address.port)
        # The answer goes to the first one: only the logs can tell the operator.
        if is_reached and own is not None and own.rpc != second:
            _tell_clash(clashes, sender, first=own.rpc, second=second)
        voters = tuple(
            VoterAddress(one, known.brokers[one].rpc.host, known.brokers[one].rpc.port)
            for one in controller.voters
            if one in known.brokers
        )
        is_registered = sender in known.brokers
        return msgspec.msgpack.encode(RegistrationStatus(known.version, is_registered, voters))

    replication.calls.register(METHOD, on_call)


def _tell_clash(
    told: set[tuple[BrokerId, Address]], broker: BrokerId, *, first: Address, second: Address
) -> None:
    """Log once that two brokers have one id. `told`: what was logged."""
    if (broker, second) in told:
        return
    if len(told) >= CLASHES_TOLD_MAX:
        told.clear()
    told.add((broker, second))
    _log.error(
        "two brokers have the id %d: the one at %s is a member, and the one at %s cannot join: "
        "give it another id",
        broker,
        first,
        second,
    )


async def introduce(
    replication: Replication, seed: BrokerId, own: Address
) -> RegistrationStatus | None:
    """Send this broker's address to `seed`; None if it does not answer."""
    payload = msgspec.msgpack.encode(BrokerRegistration(own.host, own.port))
    try:
        answer = await replication.calls.call(seed, METHOD, payload, timeout_ms=CALL_TIMEOUT_MS)
        return msgspec.msgpack.decode(answer, type=RegistrationStatus)
    except (CallError, msgspec.MsgspecError):
        return None


def _is_seed(config: BrokerConfig) -> bool:
    """Whether the other seeds know this broker by their configuration."""
    return any(seed.id == config.broker_id for seed in config.seeds)


async def introduce_to_all(replication: Replication, config: BrokerConfig) -> None:
    """Introduce this broker to the seeds, and to the voters that they name, if they do not know it
    or its address, until cancelled: they forget a broker that falls silent before it is
    registered."""
    others = {seed.id for seed in config.seeds if seed.id != config.broker_id}
    if _is_seed(config):
        await asyncio.sleep(WATCH_INTERVAL_MS / 1000)
    while True:
        unknown = set(others)
        while unknown:
            for other in sorted(unknown):
                status = await introduce(replication, other, config.rpc_advertised)
                if status is None:
                    continue
                unknown.discard(other)
                learned = _add_voters(replication, status)
                unknown |= learned - others
                others |= learned
            await asyncio.sleep(INTRODUCE_INTERVAL_MS / 1000)
        await asyncio.sleep(WATCH_INTERVAL_MS / 1000)


def _add_voters(replication: Replication, status: RegistrationStatus) -> set[BrokerId]:
    """Make the voters that another broker names peers, so that this broker reaches them."""
    learned = {one.broker for one in status.voters} - {replication.self_id}
    for one in status.voters:
        if one.broker in learned and one.broker not in replication.peers:
            replication.set_peer(one.broker, one.host, one.port)
    return learned


async def wait_unregistered(
    replication: Replication, config: BrokerConfig, controller: ControllerHost
) -> None:
    """Returns once this broker, which has joined, knows that it was unregistered."""
    loop = asyncio.get_running_loop()
    checked_s = loop.time()
    is_unsure = False
    while True:
        before_s = loop.time()
        await asyncio.sleep(WATCH_INTERVAL_MS / 1000)
        now_s = loop.time()
        leader = controller.leader_id
        has_stood_still = now_s - before_s > 1.5 * WATCH_INTERVAL_MS / 1000
        is_due = now_s - checked_s >= CHECK_INTERVAL_MS / 1000
        is_unsure = is_unsure or has_stood_still or is_due or not replication.is_peer_alive(leader)
        others = {*(seed.id for seed in config.seeds), *controller.voters} - {config.broker_id}
        # The leader first: no other broker knows more.
        for other in sorted(others, key=lambda one: (one != leader, one)) if is_unsure else ():
            answer = await introduce(replication, other, config.rpc_advertised)
            if answer is None or answer.version < controller.cluster.version:
                continue  # Its state is too old to contain this broker.
            if not answer.is_registered:
                return
            is_unsure, checked_s = False, now_s
            if other == leader:
                break

"""How a broker makes itself known to the controller's voters, and learns that it is not known to
them any more.

Why:    brokers answer each other over connections of their own making, so a voter can answer only
        whom it knows; and it knows the voters, and those who have registered, which is what the new
        broker wants to do. One that was unregistered while it was cut off is told nothing more.
How:    until it is registered, the broker tells its address to every seed now and then. The answer
        arrives as soon as the seed has connected back: it does so where it does not know the
        broker, or cannot reach it where it was before (its disk was put into another machine).
        Seeds have each other's addresses in their configuration, and tell theirs where that does
        not help for a while. Later a broker does so again when it hears no controller; a seed that
        knows more than the broker, and not the broker, knows that it is gone for good.
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
WATCH_INTERVAL_MS = 5_000

_log = logging.getLogger("strandline.broker")


class BrokerRegistration(msgspec.Struct, frozen=True, array_like=True):
    """Where the sender listens for other brokers."""

    host: str
    port: int


class Acquaintance(msgspec.Struct, frozen=True, array_like=True):
    """Whether the asker is registered in the cluster of this version."""

    version: int
    is_registered: bool


def answer_introductions(replication: Replication, controller: ControllerHost) -> None:
    """Learn the addresses of brokers that introduce themselves."""

    async def on_call(sender: BrokerId, payload: bytes) -> bytes:
        try:
            told = msgspec.msgpack.decode(payload, type=BrokerRegistration)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} introduced itself unreadably") from error
        is_reached = replication.network.is_connected(sender, Lane.CONTROL)
        if sender not in replication.peers or not is_reached:
            _log.info("broker %d introduced itself from %s:%d", sender, told.host, told.port)
            replication.set_peer(sender, told.host, told.port)
        known = controller.cluster
        return msgspec.msgpack.encode(Acquaintance(known.version, sender in known.brokers))

    replication.calls.register(METHOD, on_call)


async def introduce(replication: Replication, seed: BrokerId, own: Address) -> Acquaintance | None:
    """Tell `seed` where this broker listens; None where it does not answer."""
    payload = msgspec.msgpack.encode(BrokerRegistration(own.host, own.port))
    try:
        answer = await replication.calls.call(seed, METHOD, payload, timeout_ms=CALL_TIMEOUT_MS)
        return msgspec.msgpack.decode(answer, type=Acquaintance)
    except (CallError, msgspec.MsgspecError):
        return None


def _others(config: BrokerConfig) -> set[BrokerId]:
    """The seeds that may not know this broker: none where it is one itself, for then it is in the
    others' configuration."""
    seeds = {seed.id for seed in config.seeds}
    return set() if config.broker_id in seeds else seeds


async def introduce_to_all(replication: Replication, config: BrokerConfig) -> None:
    """Make this broker known to the seeds that do not know it, or its address, until this is
    cancelled: they forget who falls silent before it is registered."""
    others = {seed.id for seed in config.seeds if seed.id != config.broker_id}
    if not _others(config):
        await asyncio.sleep(WATCH_INTERVAL_MS / 1000)
    while True:
        unknown = set(others)
        while unknown:
            for seed in sorted(unknown):
                if await introduce(replication, seed, config.rpc_advertised) is not None:
                    unknown.discard(seed)
            await asyncio.sleep(INTRODUCE_INTERVAL_MS / 1000)
        await asyncio.sleep(WATCH_INTERVAL_MS / 1000)


async def wait_unregistered(
    replication: Replication, config: BrokerConfig, controller: ControllerHost
) -> None:
    """Returns once this broker, which has joined, is known to be registered no more."""
    is_unsure = False
    while True:
        await asyncio.sleep(WATCH_INTERVAL_MS / 1000)
        is_unsure = is_unsure or not replication.is_peer_alive(controller.leader_id)
        for seed in sorted(_others(config)) if is_unsure else ():
            told = await introduce(replication, seed, config.rpc_advertised)
            if told is None or told.version < controller.cluster.version:
                continue  # It does not know yet that this broker has joined.
            if not told.is_registered:
                return
            is_unsure = False

"""How a broker that the others do not know yet makes itself known to the controller's voters.

Why:    brokers answer each other over connections of their own making, so a voter can answer only
        whom it knows; and it knows the voters, and those who have registered, which is what the new
        broker wants to do.
How:    until it is registered, the broker tells its address to every seed now and then. The answer
        arrives as soon as the seed has connected back.
Owns:   nothing.
Source: design section 3."""

import logging

import msgspec

from strandline.base.errors import ProtocolError
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.network.calls import CallError
from strandline.replication.host import Replication

METHOD = "broker.introduce"
CALL_TIMEOUT_MS = 1_000

_log = logging.getLogger("strandline.broker")


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """Where the sender listens for other brokers."""

    host: str
    port: int


def answer_introductions(replication: Replication) -> None:
    """Learn the addresses of brokers that introduce themselves."""

    async def on_call(sender: BrokerId, payload: bytes) -> bytes:
        try:
            told = msgspec.msgpack.decode(payload, type=Introduction)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} introduced itself unreadably") from error
        if sender not in replication.peers:
            _log.info("broker %d introduced itself from %s:%d", sender, told.host, told.port)
            replication.set_peer(sender, told.host, told.port)
        return b""

    replication.calls.register(METHOD, on_call)


async def introduce(replication: Replication, seed: BrokerId, own: Address) -> bool:
    """Tell `seed` where this broker listens; whether it answered."""
    payload = msgspec.msgpack.encode(Introduction(own.host, own.port))
    try:
        await replication.calls.call(seed, METHOD, payload, timeout_ms=CALL_TIMEOUT_MS)
    except CallError:
        return False
    return True

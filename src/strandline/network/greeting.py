"""The first frame of each connection between brokers, in both directions.

    opener   --> greeting, messages ...
    acceptor --> greeting, replies ...    from the first reply on, if the opener reads replies

Why:    each side must know which broker, of which cluster, the other one is, and which process of
        it: what an earlier process wrote may still be readable.
How:    a MessagePack array. Later fields are optional: earlier releases ignore them.
Owns:   nothing.
Source: design section 5; docs/decisions/0072-replies.md."""

import logging
from dataclasses import dataclass

import msgspec

from strandline.base.network import Lane
from strandline.model.ids import BrokerId

WIRE_VERSION = 2
GREETING_BYTES_MAX = 16 * 1024
"""The first frame names the sender, which may be no broker at all."""
PROCESS_MAX = 2**62

_log = logging.getLogger("strandline.network")


class Greeting(msgspec.Struct, frozen=True, array_like=True):
    """`reads_replies`: the sender reads what is written on the connection that it opened.
    `process`: drawn at the start of the sender's process; 0 from earlier releases."""

    wire_version: int
    cluster: str
    sender: BrokerId
    lane: int
    reads_replies: bool = False
    process: int = 0


@dataclass(frozen=True, slots=True)
class OwnGreeting:
    """The first frame that this process sends on every connection."""

    cluster: str
    sender: BrokerId
    process: int

    def encoded(self, lane: Lane) -> bytes:
        """The frame's bytes for a connection of this lane."""
        greeting = Greeting(
            WIRE_VERSION,
            self.cluster,
            self.sender,
            int(lane),
            reads_replies=True,
            process=self.process,
        )
        return msgspec.msgpack.encode(greeting)


def read_greeting(frame: memoryview, cluster: str) -> Greeting:
    """Raises ValueError, and logs why, if this is no greeting of a broker of `cluster`."""
    try:
        greeting = msgspec.msgpack.decode(frame, type=Greeting)
        Lane(greeting.lane)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        _log.warning("refused a connection that is no broker's: %s", error)
        raise ValueError("no greeting") from error
    if greeting.wire_version != WIRE_VERSION or greeting.cluster != cluster:
        _log.warning(
            "refused broker %d: cluster '%s', wire version %d; here '%s', %d",
            greeting.sender,
            greeting.cluster,
            greeting.wire_version,
            cluster,
            WIRE_VERSION,
        )
        raise ValueError("another cluster's broker")
    return greeting

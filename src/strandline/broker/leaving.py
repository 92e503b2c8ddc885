"""Hands over what this broker leads before it ends.

Why:    an orderly stop should cost a round trip, not the election time-out that a kill costs.
How:    every group led here is handed to another replica in sync. Then waits until they have new
        leaders, but not for brokers that are ending too: the others find a leader by themselves.
Source: Raft thesis 3.10; Kafka's controlled shutdown."""

import asyncio

from strandline.base.clock import Clock
from strandline.model.ids import NO_BROKER
from strandline.replication.host import Replication

HAND_OVER_MS_MAX = 2_000
LOOK_INTERVAL_MS = 10


async def hand_over(replication: Replication, clock: Clock) -> None:
    """Returns when nothing that another broker could lead is led here, or after a while."""
    handed = [(one, one.hand_over()) for one in list(replication.replicas.values())]
    waiting = [(replica, to) for replica, to in handed if to != NO_BROKER]
    deadline_ms = clock.monotonic_ms() + HAND_OVER_MS_MAX
    while waiting and clock.monotonic_ms() < deadline_ms:
        await asyncio.sleep(LOOK_INTERVAL_MS / 1000)
        waiting = [
            (replica, to)
            for replica, to in waiting
            if replica.is_leader and not replication.has_hung_up(to)
        ]

"""Hands over what this broker leads before it stops.

Why:    an orderly stop should cost a round trip, not the election time-out of a kill.
How:    Each group led here goes to another in-sync replica, on a broker in maintenance only if
        there is no other. The broker then waits until the groups have new leaders, but not for
        brokers that stop too: their groups elect a leader by themselves. A broker in maintenance
        may hand a group back while this one lives: it is handed over again. The broker looks
        whenever a group here loses its leadership, and every 200 ms, because a peer that hangs up
        sends nothing.
Source: Raft thesis 3.10; Kafka's controlled shutdown."""

import asyncio
from collections.abc import Collection

from strandline.base.clock import Clock
from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

HAND_OVER_MS_MAX = 2_000
LOOK_INTERVAL_MS = 200


async def hand_over(
    replication: Replication, clock: Clock, *, spared: Collection[BrokerId] = ()
) -> None:
    """Returns when this broker leads no group that another broker could lead, and waits for
    none; or after 2 s. `spared`: the brokers in maintenance."""
    changed = asyncio.Event()

    def on_leadership(_: Replica, *, is_leading: bool) -> None:
        if not is_leading:
            # Not from within the step that ended it.
            clock.call_soon(changed.set)

    def on_leader_known(_: GroupId) -> None:
        clock.call_soon(changed.set)

    replication.on_leadership.append(on_leadership)
    replication.on_leader_known.append(on_leader_known)
    try:
        handed = [(one, _hand_over(one, spared)) for one in list(replication.replicas.values())]
        waiting = [(replica, to) for replica, to in handed if to != NO_BROKER]
        deadline_ms = clock.monotonic_ms() + HAND_OVER_MS_MAX
        while waiting and clock.monotonic_ms() < deadline_ms:
            changed.clear()
            try:
                await asyncio.wait_for(changed.wait(), LOOK_INTERVAL_MS / 1000)
            except TimeoutError:
                pass
            waiting = [
                (replica, _hand_over_again(replica, to, spared))
                for replica, to in waiting
                if replica.is_waited_for and not replication.has_hung_up(to)
            ]
    finally:
        replication.on_leadership.remove(on_leadership)
        replication.on_leader_known.remove(on_leader_known)


def _hand_over(replica: Replica, spared: Collection[BrokerId]) -> BrokerId:
    """The next leader; a spared broker only if no other could lead."""
    to = replica.hand_over(spared)
    return replica.hand_over() if to == NO_BROKER and spared else to


def _hand_over_again(replica: Replica, to: BrokerId, spared: Collection[BrokerId]) -> BrokerId:
    """The next leader of a group that was handed to `to`: another one if `to` has handed it
    back."""
    if not replica.is_leader or replica.transfer.is_under_way:
        return to
    again = _hand_over(replica, spared)
    return to if again == NO_BROKER else again

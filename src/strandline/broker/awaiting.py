"""Waits until something that was decided is also the case here, within a client's time.

Why:    the controller decides at once, but elections take a moment: a client that is told "created"
        and then finds no leader has a bad start.
How:    looks again at every change of leadership that this broker hears of, and gives up quietly:
        the decision stands either way.
Source: Kafka's CreateTopics `timeoutMs`."""

import asyncio
from collections.abc import Iterable

from strandline.broker.context import Services
from strandline.broker.partitions import present_leader
from strandline.model.ids import NO_BROKER, GroupId

WAIT_MS_MAX = 10_000


async def wait_for_leaders(services: Services, topics: Iterable[str], *, timeout_ms: int) -> None:
    """Until every partition of these topics has a leader that this broker knows of."""
    waiting = list(topics)
    changed = asyncio.Event()

    def on_change(_: GroupId) -> None:
        changed.set()

    is_late = False

    def on_timeout() -> None:
        nonlocal is_late
        is_late = True
        changed.set()

    services.replication.on_leader_known.append(on_change)
    timer = services.clock.call_later(max(0, min(timeout_ms, WAIT_MS_MAX)), on_timeout)
    try:
        while not is_late and not all(_has_leaders(services, name) for name in waiting):
            changed.clear()
            await changed.wait()
    finally:
        timer.cancel()
        services.replication.on_leader_known.remove(on_change)


def _has_leaders(services: Services, name: str) -> bool:
    topic = services.cluster.topics.get(name)
    return topic is not None and all(
        present_leader(services, partition)[0] != NO_BROKER for partition in topic.partitions
    )

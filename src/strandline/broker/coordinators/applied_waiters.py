"""Waits until a decision has taken effect on this broker, within a client's time-out.

Why:    the controller decides at once, but elections take a moment: a client that is told "created"
        and then finds no leader has a bad start. A leader whose lease ran out (a busy machine, a
        slow link) mostly has it again a heartbeat later: not every client retries.
How:    It looks again whenever this broker hears of a leader, or applies controller records; for
        leases, a few times a heartbeat. After the time-out it returns without an error: the
        decision stands either way, and a leader without a lease answers so.
Source: Kafka's CreateTopics `timeoutMs`; Raft thesis 6.4 (read-only queries wait for the
        leader's confirmation)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import known_leader, present_leader
from strandline.controller.commands import CreatePartitions, CreateTopics, Refused, TopicResults
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica

WAIT_MS_MAX = 10_000
LEASE_LOOKS = 4
"""How often it looks for a missing lease within one heartbeat interval."""


async def wait_until(
    services: Services,
    holds: Callable[[], bool],
    *,
    hooks: Sequence[list[Callable[..., None]]],
    timeout_ms: int,
) -> None:
    """Wait until it `holds`, or time is up: looks at once, and whenever one of `hooks` is
    called."""
    changed = asyncio.Event()
    is_late = False

    def on_change(*_: object) -> None:
        changed.set()

    def on_timeout() -> None:
        nonlocal is_late
        is_late = True
        changed.set()

    timer = services.clock.call_later(max(0, min(timeout_ms, WAIT_MS_MAX)), on_timeout)
    for hook in hooks:
        hook.append(on_change)
    try:
        while not is_late and not holds():
            changed.clear()
            await changed.wait()
    finally:
        timer.cancel()
        for hook in hooks:
            hook.remove(on_change)


async def wait_for_leaders(services: Services, topics: Iterable[str], *, timeout_ms: int) -> None:
    """Wait until this broker knows a leader of every partition of these topics."""
    waiting = deque(topics)
    # How many partitions of the first waiting topic have a leader: no partition is looked at twice,
    # however many elections there are.
    led_count = 0

    def are_led() -> bool:
        nonlocal led_count
        while waiting:
            topic = services.cluster.topics.get(waiting[0])
            partitions = () if topic is None else topic.partitions
            while led_count < len(partitions) and _has_leader(services, partitions[led_count]):
                led_count += 1
            if topic is None or led_count != len(partitions):
                return False
            waiting.popleft()
            led_count = 0
        return True

    # Leaders may be announced before the topic is applied.
    await wait_until(
        services,
        are_led,
        hooks=[services.replication.on_leader_known, services.controller.on_caught_up],
        timeout_ms=timeout_ms,
    )


async def make_partitions(
    services: Services, command: CreateTopics | CreatePartitions, *, timeout_ms: int
) -> TopicResults | Refused:
    """Have the controller make topics or partitions, and wait until they have leaders; the
    result of each, or why the command was refused."""
    try:
        answer = await services.obtain(command, TopicResults)
    except ApiError as error:
        return Refused(error.code, error.message)
    made = [r.name for r in answer.topics if r.error_code == Error.NONE and r.name is not None]
    if not command.validate_only:
        await wait_for_leaders(services, made, timeout_ms=timeout_ms)
    return answer


async def wait_for_preferred(
    services: Services, partitions: Iterable[Partition], *, timeout_ms: int
) -> Sequence[Partition]:
    """Wait until this broker hears that the preferred replicas lead; returns the partitions
    where they do not yet."""
    waiting = deque(partitions)

    def are_led() -> bool:
        while waiting and _leads_preferred(services, waiting[0]):
            waiting.popleft()
        return not waiting

    hooks = [services.replication.on_leader_known]
    await wait_until(services, are_led, hooks=hooks, timeout_ms=timeout_ms)
    return [one for one in waiting if not _leads_preferred(services, one)]


async def wait_for_version(services: Services, version: int, *, timeout_ms: int) -> None:
    """Wait until this broker has applied `version` of the cluster."""
    await wait_until(
        services,
        lambda: services.cluster.version >= version,
        hooks=[services.controller.on_caught_up],
        timeout_ms=timeout_ms,
    )


def _has_leader(services: Services, partition: Partition) -> bool:
    return present_leader(services, partition)[0] != NO_BROKER


def _leads_preferred(services: Services, partition: Partition) -> bool:
    return known_leader(services, partition)[0] == partition.replicas[0]


def when_leases_hold(
    context: RequestContext, replicas: Sequence[Replica], then: Callable[[], None]
) -> None:
    """Call `then` once each of these leaders without a lease has one again, or leads no more.
    After an election time-out call it anyway: the quorum is gone, or elects another leader. If
    the client goes, `then` is not called."""
    settings = context.services.config.replication
    clock = context.services.clock
    deadline_ms = clock.monotonic_ms() + settings.election_timeout_ms
    pause_ms = max(1, settings.heartbeat_interval_ms // LEASE_LOOKS)

    def look() -> None:
        if context.is_abandoned:
            return
        waits = any(one.is_leader and not one.can_serve_reads for one in replicas)
        if waits and clock.monotonic_ms() < deadline_ms:
            clock.call_later(pause_ms, look)
            return
        try:
            then()
        except Exception:  # A task boundary: the caller does not know the request.
            context.fail()

    clock.call_later(pause_ms, look)

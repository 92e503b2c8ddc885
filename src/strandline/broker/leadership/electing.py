"""Hands partitions over to their preferred replicas when an administrator asks any broker.

Why:    any broker may be asked, and only the leader of a partition can hand it over.
How:    partitions --grouped by leader, a few in a call--> each leader hands over --> wait until
        this broker hears the new leaders, or time is up. A partition without a leader elects one by
        itself.
Owns:   nothing.
Source: KIP-183, KIP-460; Raft thesis 3.10."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import msgspec

from strandline.base.errors import ProtocolError
from strandline.broker.context import Services
from strandline.broker.coordinators.applied_waiters import wait_for_preferred
from strandline.broker.partitions import check_preferred, is_alive, known_leader
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.network.calls import CallError
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica

METHOD = "partitions.prefer"
CALL_TIMEOUT_MS = 2_000
PARTITIONS_PER_CALL = 50
_groups = msgspec.msgpack.Decoder(list[int])
_codes = msgspec.msgpack.Decoder(list[int])


def answer_elections(services: Services) -> None:
    """Serve the requests of other brokers to hand over what this one leads."""

    async def on_call(sender: BrokerId, payload: bytes) -> bytes:
        try:
            groups = _groups.decode(payload)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} sent an unreadable election request") from error
        return msgspec.msgpack.encode([int(_prefer(services, GroupId(one))) for one in groups])

    services.replication.calls.register(METHOD, on_call)


async def elect_preferred(
    services: Services, partitions: Iterable[Partition], *, timeout_ms: int
) -> Mapping[GroupId, Error]:
    """{group: the outcome}; NONE: its preferred replica leads."""
    found: dict[GroupId, Error] = {}
    by_leader: dict[BrokerId, list[Partition]] = {}
    for partition in partitions:
        leader, _ = known_leader(services, partition)
        if leader == partition.replicas[0]:
            found[partition.group] = Error.ELECTION_NOT_NEEDED
        elif leader == NO_BROKER or not is_alive(services, partition.replicas[0]):
            found[partition.group] = Error.PREFERRED_LEADER_NOT_AVAILABLE
        else:
            by_leader.setdefault(leader, []).append(partition)
    answers = await asyncio.gather(
        *(_ask(services, leader, partitions) for leader, partitions in by_leader.items())
    )
    waiting: list[Partition] = []
    for partitions, codes in zip(by_leader.values(), answers, strict=True):
        for partition, code in zip(partitions, codes, strict=True):
            found[partition.group] = code
            if code is Error.NONE:
                waiting.append(partition)
    late = await wait_for_preferred(services, waiting, timeout_ms=timeout_ms)
    found.update((one.group, Error.REQUEST_TIMED_OUT) for one in late)
    return found


async def _ask(services: Services, leader: BrokerId, partitions: list[Partition]) -> list[Error]:
    """Ask for a few at a time: heartbeats must not wait for thousands of them."""
    codes: list[Error] = []
    for start in range(0, len(partitions), PARTITIONS_PER_CALL):
        codes += await _ask_few(services, leader, partitions[start : start + PARTITIONS_PER_CALL])
        await asyncio.sleep(0)
    return codes


async def _ask_few(
    services: Services, leader: BrokerId, partitions: list[Partition]
) -> list[Error]:
    if leader == services.broker_id:
        return [_prefer(services, one.group) for one in partitions]
    payload = msgspec.msgpack.encode([one.group for one in partitions])
    try:
        answer = await services.replication.calls.call(
            leader, METHOD, payload, timeout_ms=CALL_TIMEOUT_MS
        )
        codes = [Error(code) for code in _codes.decode(answer)]  # type: ignore[call-arg]
    except (CallError, msgspec.MsgspecError, ValueError):
        codes = []
    return (
        codes if len(codes) == len(partitions) else [Error.LEADER_NOT_AVAILABLE] * len(partitions)
    )


def _prefer(services: Services, group: GroupId) -> Error:
    """Begin to hand over a group led here; NONE if that has begun."""
    replica: Replica | None = services.replication.replicas.get(group)
    partition = services.cluster.groups.get(group)
    if replica is None or partition is None:
        return Error.LEADER_NOT_AVAILABLE
    error = check_preferred(replica, partition)
    if error is Error.NONE:
        replica.transfer_leadership(partition.replicas[0])
    return error

"""Entries that one follower sends another, over real sockets and files; who is near whom. Source:
decision 0022."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.replication.hosts import BROKERS, bring_back, contents, led, until, write

from strandline.base.errors import ProtocolError
from strandline.base.network import Lane
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.messages import AppendRequest, PeerCatchupRequest, Run
from strandline.replication.host.nearness import Nearness
from strandline.replication.wire import (
    AppendHead,
    Kind,
    PeerCatchupOrder,
    decode_append,
    decode_peer_catchup_order,
    encode_append_head,
    encode_control,
)

ONE, TWO, THREE, FOUR = map(BrokerId, (1, 2, 3, 4))


def placed(places: dict[BrokerId, Labels]) -> Nearness:
    nearness = Nearness()
    nearness.place(places)
    return nearness


def test_brokers_are_as_near_as_their_labels_agree_from_the_region_down() -> None:
    places = {
        ONE: Labels("west", "w1", "r1"),
        TWO: Labels("west", "w1", "r2"),
        THREE: Labels("west", "w2", "r1"),
        FOUR: Labels("east", "w1", "r1"),
    }
    nearness = placed(places)
    assert [nearness.levels(ONE, one) for one in places] == [3, 2, 1, 0]
    assert [nearness.are_apart(ONE, one) for one in places] == [False, False, False, True]


def test_a_label_that_is_not_said_agrees_with_nothing() -> None:
    nearness = placed({ONE: Labels("west"), TWO: Labels("west"), THREE: Labels()})
    assert nearness.levels(ONE, TWO) == 1
    assert nearness.levels(THREE, THREE) == 0


def test_who_is_nowhere_is_not_known_to_be_apart_from_anybody() -> None:
    nearness = placed({ONE: Labels("west"), THREE: Labels()})
    assert not nearness.are_apart(ONE, THREE)
    assert not nearness.are_apart(ONE, FOUR)


def test_orders_and_lent_appends_as_bytes() -> None:
    request = AppendRequest(
        Epoch(3), Index(4), Epoch(2), Index(9), Index(9), (Run(Epoch(3), Index(8)),)
    )
    order = PeerCatchupOrder(GroupId(7), PeerCatchupRequest(TWO, request, 1_000, True))
    assert (
        decode_peer_catchup_order(memoryview(encode_control(Kind.PEER_CATCHUP_ORDER, order))[1:])
        == order
    )
    earlier = [7, msgspec.to_builtins(order.request)[:-1]]
    assert decode_peer_catchup_order(memoryview(msgspec.msgpack.encode(earlier))) == order
    head = AppendHead(GroupId(7), request)
    message = encode_append_head(head, Kind.PEER_APPEND) + b"batches"
    assert decode_append(memoryview(message)) == (head, memoryview(b"batches"))
    with pytest.raises(ProtocolError, match="of kind 19"):
        decode_append(memoryview(b"\x13" + message[1:]))


def test_orders_that_wait_are_forgotten_where_their_leader_begins_anew(tmp_path: Path) -> None:
    """Otherwise the follower would be sent the same twice, or refuse what it cannot append yet."""

    def order(to: BrokerId, epoch: Epoch, first: int, last: int) -> PeerCatchupRequest:
        runs = (Run(epoch, Index(last)),)
        request = AppendRequest(epoch, Index(first - 1), epoch, Index(last), Index(last), runs)
        return PeerCatchupRequest(to, request, 1_000, False)

    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            away, near = (host for host in hosts if host.broker != leader.self_id)
            await write(leader, [b"value"] * 30, acks=-1)
            await until(lambda: near.replica.high_watermark == 30, "the other knows what it has")
            near.network.remove_peer(away.broker)
            peer_sender = near.replication.peer_sender
            counts = []
            for first, last in ((1, 10), (11, 20), (21, 30), (11, 20), (21, 30)):
                peer_sender.add(near.replica, order(away.broker, leader.epoch, first, last))
                counts.append(peer_sender.order_count)
            assert counts == [1, 2, 3, 1, 2]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("connects_late", "is_told_late"),
    [(False, False), (True, False), (True, True)],
    ids=["at once", "once it is connected", "its leader comes on two ways"],
)
def test_a_replica_that_returns_is_sent_what_it_lacks_by_the_one_near_it(
    tmp_path: Path, connects_late: bool, is_told_late: bool
) -> None:
    """Byte for byte what its leader has; also where the leader reaches it before the other does,
    and where that one's second connection comes up while something is on its way by others."""

    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            away, near = (at for at, broker in enumerate(BROKERS) if broker != leader.self_id)
            far = {broker: Labels("west") for broker in BROKERS if broker != leader.self_id}
            for host in hosts:
                host.replication.nearness.place({leader.self_id: Labels("east"), **far})
            await write(leader, [b"before"] * 10, acks=-1)
            hosts[away].stop()
            for number in range(40):
                await write(leader, [bytes([number]) * 20_000] * 10, acks=-1)
            if connects_late:
                hosts[near].network.remove_peer(hosts[away].broker)
            await bring_back(hosts, away)
            returned = hosts[away].replica
            peer_sender = hosts[near].replication.peer_sender
            if connects_late:
                await until(lambda: peer_sender.order_count > 0, "the other was ordered to lend")
                if is_told_late:
                    events = leader.host.inbound
                    events.on_peer_connected(hosts[away].broker, Lane.CONTROL)
                    asked = leader.raft.progress[hosts[away].broker]
                    await until(lambda: not asked.is_probing, "the leader knows how far it is")
                hosts[near].network.set_peer(hosts[away].broker, "127.0.0.1", hosts[away].port)
            await until(lambda: returned.high_watermark == 410, "the returned replica has all")
            assert contents(returned) == contents(leader)
            assert peer_sender.peer_sent_bytes >= 8_000_000

    asyncio.run(scenario())

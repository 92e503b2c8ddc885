"""Which messages of a pass go as replies. Source: docs/decisions/0072-replies.md."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.replication.hosts import contents, led, until, write

from strandline.base.disk import Buffer
from strandline.base.network import Lane
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.network.greeting import WIRE_VERSION, OwnGreeting
from strandline.network.tcp import TcpNetwork
from strandline.raft.messages import AppendResponse, VoteResponse
from strandline.replication.host.control_outbox import ControlOutbox
from strandline.replication.liveness import sessions
from strandline.replication.wire import ABILITIES, Ability, Kind, decode_raft

LEADER, OTHER = BrokerId(1), BrokerId(2)
ACK = AppendResponse(Epoch(3), True, Index(5), Index(5))
VOTE = VoteResponse(Epoch(3), granted=True)


class OnePass:
    """A clock whose pass ends when the test says so, and a network that notes what it gets."""

    def __init__(self, *, replies: bool = True, connected: bool = True) -> None:
        self.replies, self.connected = replies, connected
        self.sent: list[tuple[str, BrokerId, Lane, list[tuple[GroupId, object]]]] = []
        self._due: list[Callable[[], None]] = []
        self.outbox = ControlOutbox(self, self, [LEADER, OTHER])  # type: ignore[arg-type]

    def at_pass_end(self, callback: Callable[[], None]) -> None:
        self._due.append(callback)

    def end(self) -> None:
        due, self._due = self._due, []
        for callback in due:
            callback()

    def reply(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        if self.replies:
            self._note("reply", peer, lane, parts)
        return self.replies

    def send(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        self._note("send", peer, lane, parts)
        return True

    def is_connected(self, peer: BrokerId, lane: Lane) -> bool:
        return self.connected

    def _note(self, how: str, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> None:
        message = memoryview(b"".join(parts))
        assert message[0] == Kind.RAFT
        self.sent.append((how, peer, lane, list(decode_raft(message[1:]))))


def test_acknowledgements_are_replies_on_the_lane_of_appends() -> None:
    one = OnePass()
    one.outbox.send(LEADER, GroupId(1), ACK)
    one.outbox.send(LEADER, GroupId(2), VOTE)
    one.outbox.send(LEADER, GroupId(3), ACK)
    one.outbox.send(OTHER, GroupId(4), VOTE)
    one.end()
    assert one.sent == [
        ("reply", LEADER, Lane.BULK, [(1, ACK), (3, ACK)]),
        ("send", LEADER, Lane.CONTROL, [(2, VOTE)]),
        ("send", OTHER, Lane.CONTROL, [(4, VOTE)]),
    ]


def test_acknowledgements_need_no_connection_of_this_broker() -> None:
    one = OnePass(connected=False)
    one.outbox.send(LEADER, GroupId(1), ACK)
    one.outbox.send(LEADER, GroupId(2), VOTE)
    one.end()
    assert one.sent == [("reply", LEADER, Lane.BULK, [(1, ACK)])]


def test_without_a_connection_for_replies_all_goes_on_the_control_lane_in_order() -> None:
    one = OnePass(replies=False)
    one.outbox.send(LEADER, GroupId(1), ACK)
    one.outbox.send(LEADER, GroupId(2), VOTE)
    one.end()
    assert one.sent == [("send", LEADER, Lane.CONTROL, [(1, ACK), (2, VOTE)])]


class EarlierGreeting(msgspec.Struct, frozen=True, array_like=True):
    """As brokers of the release before replies greet."""

    wire_version: int
    cluster: str
    sender: BrokerId
    lane: int


@pytest.mark.parametrize("earlier", [(1,), (2,), (1, 2)])
def test_brokers_of_the_earlier_release_lead_and_follow_beside_those_that_reply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: tuple[int, ...]
) -> None:
    replied: list[tuple[BrokerId, BrokerId]] = []
    reply, encoded_now = TcpNetwork.reply, OwnGreeting.encoded

    def encoded(self: OwnGreeting, lane: Lane) -> bytes:
        if self.sender in earlier:
            greeting = EarlierGreeting(WIRE_VERSION, self.cluster, self.sender, int(lane))
            return msgspec.msgpack.encode(greeting)
        return encoded_now(self, lane)

    def reply_unless_earlier(
        self: TcpNetwork, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]
    ) -> bool:
        if self._self_id in earlier or not reply(self, peer, lane, parts):
            return False
        replied.append((self._self_id, peer))
        return True

    # Beside earlier releases, no exchange of heartbeats is used.
    abilities = ABILITIES & ~Ability.EXCHANGES
    monkeypatch.setattr(sessions, "ABILITIES", abilities)
    monkeypatch.setattr(OwnGreeting, "encoded", encoded)
    monkeypatch.setattr(TcpNetwork, "reply", reply_unless_earlier)

    async def scenario() -> None:
        async with led(tmp_path) as (hosts, leader):
            for number in range(20):
                result = await write(leader, [b"%d" % number], acks=-1)
                assert result.error_code == 0
            leader.transfer_leadership(BrokerId(3))
            await until(lambda: hosts[2].replica.can_serve_reads, "broker 3 leads")
            for number in range(20):
                result = await write(hosts[2].replica, [b"%d" % number], acks=-1)
                assert result.error_code == 0
            await until(
                lambda: all(host.replica.high_watermark == 40 for host in hosts),
                "every replica may show all records",
            )
            first, second, third = (contents(host.replica) for host in hosts)
            assert first == second == third

    asyncio.run(scenario())
    assert not {one for pair in replied for one in pair} & set(earlier)
    if earlier != (1, 2):
        assert replied

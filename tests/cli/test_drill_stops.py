"""A drill that is interrupted ends its cut and removes what it made; one that waits says for what.

Source: docs/decisions/0019-drills.md; docs/operating/drills.md."""

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import HANDLERS, FakeCluster, FakeTransport

from strandline.base.errors import OperatorError
from strandline.cli.commands import drill_cancel
from strandline.cli.drill import region
from strandline.cli.drill.region import RegionDrill
from strandline.cli.drill.topics import TOPIC_PREFIX
from strandline.client.cluster import Client
from strandline.client.views import BrokerView
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_status import DescribeStatusResponse, StatusBroker
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

DURATION_MS = 30_000


class Idle:
    """A load, or groups, without clients."""

    is_under_way = is_read = True

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: None


class Drilled:
    """A cluster that takes drills, of which brokers 2 and 3 are the west. Time is virtual:
    `at_ms` calls a function once that time has come."""

    def __init__(self, fake: FakeCluster, patch: pytest.MonkeyPatch) -> None:
        self.fake = fake
        self.now_ms = 0
        self.cut: set[int] = set()
        self.lines: list[str] = []
        self.at_ms: list[tuple[int, Callable[[], None]]] = []
        fake.extra["IsolateBroker"] = self._isolate
        self.client = Client(fake.bootstrap, timeout_ms=5_000, transport=FakeTransport(fake))
        patch.setattr(region, "now_ms", lambda: self.now_ms)
        patch.setattr(region, "time", SimpleNamespace(sleep=self._sleep))
        patch.setattr(region, "Load", lambda *_: Idle())
        patch.setattr(region, "offsets_leaders", lambda _: {})
        patch.setattr(region, "takes_clients", lambda *_, **__: not self.cut)
        patch.setattr(RegionDrill, "_groups", lambda *_: Idle())
        self.drill = RegionDrill(
            self.client,
            lambda _: self.client,
            region.Settings("west", DURATION_MS, partitions=1, steady_ms_max=300_000),
            [BrokerId(2), BrokerId(3)],
            tell=self.lines.append,
        )

    @property
    def topics(self) -> list[str]:
        return [one for one in self.fake.topics if one.startswith(TOPIC_PREFIX)]

    @property
    def known(self) -> dict[BrokerId, BrokerView]:
        return self.client.metadata().brokers

    def _sleep(self, seconds: float) -> None:
        self.now_ms += max(1, round(seconds * 1_000))
        for at_ms, does in list(self.at_ms):
            if self.now_ms >= at_ms:
                self.at_ms.remove((at_ms, does))
                does()

    def _isolate(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, IsolateBrokerRequest)
        was_cut = broker in self.cut
        (self.cut.discard if request.ends else self.cut.add)(broker)
        return IsolateBrokerResponse(was_in_drill=was_cut)


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture
def drilled(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Drilled:
    """See `Drilled`; the drill does nothing but cut."""
    made = Drilled(cluster, monkeypatch)

    def only_cut(drill: RegionDrill, load: object, groups: object) -> None:
        begun_ms = drill._cut(made.known)
        drill._stay_cut(begun_ms + DURATION_MS)

    monkeypatch.setattr(RegionDrill, "_drill", only_cut)
    return made


def test_an_interrupt_ends_the_cut_and_removes_the_topic(drilled: Drilled) -> None:
    drilled.at_ms.append((8_000, interrupt))
    with pytest.raises(KeyboardInterrupt):
        drilled.drill.run()
    assert drilled.cut == set() and drilled.topics == []
    assert drilled.lines[-2:] == ["broker 2 is connected again", "broker 3 is connected again"]


def test_an_interrupt_before_the_cut_begins_lets_it_never_begin(drilled: Drilled) -> None:
    drilled.at_ms.append((500, interrupt))
    with pytest.raises(KeyboardInterrupt):
        drilled.drill.run()
    assert drilled.cut == set() and drilled.topics == []


def test_an_interrupt_while_the_topic_is_created_leaves_none(
    drilled: Drilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = region.create_topic

    def create_and_interrupt(*arguments: object) -> None:
        create(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(region, "create_topic", create_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        drilled.drill.run()
    assert drilled.topics == []
    monkeypatch.setattr(region, "create_topic", lambda *_: interrupt())
    with pytest.raises(KeyboardInterrupt):
        drilled.drill.run()
    assert drilled.lines == []  # There was nothing to remove, and nothing to say.


def test_a_broker_that_does_not_answer_returns_by_itself_and_that_is_said(
    drilled: Drilled,
) -> None:
    def lose() -> None:
        drilled.fake.down.add(3)
        interrupt()

    drilled.at_ms.append((11_000, lose))
    with pytest.raises(KeyboardInterrupt):
        drilled.drill.run()
    assert drilled.lines[-2] == "broker 2 is connected again"
    assert drilled.lines[-1].startswith("broker 3 reconnects by itself within 21 s: ")


def test_a_second_interrupt_says_what_is_left_and_what_ends_it(
    drilled: Drilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region, "end_isolation", lambda *_, **__: interrupt())
    drilled.at_ms.append((11_000, interrupt))
    with pytest.raises(KeyboardInterrupt):
        drilled.drill.run()
    (name,) = drilled.topics
    assert drilled.lines[-1].startswith(
        f"interrupted again: topic {name} may be left, and brokers may be cut off for 20 s more; "
        "to end both: "
    )
    assert drilled.lines[-1].endswith("drill cancel")


def test_the_cut_counts_down(drilled: Drilled) -> None:
    drilled.drill.run()
    assert [line for line in drilled.lines if "more" in line] == [
        "cut off for 20 s more",
        "cut off for 10 s more",
    ]


def test_a_drill_whose_cut_was_ended_by_another_command_ends(drilled: Drilled) -> None:
    drilled.at_ms.append((6_000, drilled.cut.clear))
    with pytest.raises(OperatorError, match="broker 2 is not cut off any more: another command"):
        drilled.drill.run()
    assert drilled.now_ms < 9_000 and drilled.topics == []


def test_a_topic_that_drill_cancel_has_deleted_is_not_said_to_be_left(drilled: Drilled) -> None:
    def cancel() -> None:
        drilled.cut.clear()
        for topic in drilled.topics:
            del drilled.fake.topics[topic]

    drilled.at_ms.append((6_000, cancel))
    with pytest.raises(OperatorError, match="another command has ended the drill"):
        drilled.drill.run()
    assert not [line for line in drilled.lines if "not deleted" in line]


def test_who_waits_until_all_is_as_before_is_told_for_what_and_how_long(drilled: Drilled) -> None:
    lines = ["t-0: led by broker 2 instead of 1: 287 s are left", "t-1: no leader answers"]
    drilled.at_ms.append((25_000, lines.clear))
    assert drilled.drill._wait_steady(lambda: lines) == []
    assert drilled.lines == [
        (
            f"waiting until all is as before, for {left} s at most: t-0: led by broker 2 instead "
            "of 1: 287 s are left; and 1 more"
        )
        for left in (298, 288, 278)
    ]
    drilled.lines.clear()
    drilled.at_ms.append((drilled.now_ms + 1_000, lines.clear))
    lines.append("t-1: no leader answers")
    assert drilled.drill._wait_steady(lambda: lines) == []
    assert drilled.lines == []  # A short wait needs no word.


def test_an_interrupt_does_not_wait_for_a_controller_that_decides_nothing(
    drilled: Drilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport, asked_ms, made_ms = FakeTransport(drilled.fake), list[int](), list[int]()
    deletes = HANDLERS["DeleteTopics"]

    def delete(fake: FakeCluster, broker: int, request: Message) -> Message | None:
        asked_ms.append(transport.now_ms)
        if len(asked_ms) > 1:
            return deletes(fake, broker, request)
        return None

    def make_client(timeout_ms: int) -> Client:
        made_ms.append(timeout_ms)
        return Client(drilled.fake.bootstrap, timeout_ms=timeout_ms, transport=transport)

    drilled.fake.extra["DeleteTopics"] = delete
    monkeypatch.setattr(drilled.drill, "_make_client", make_client)
    monkeypatch.setattr(drilled.drill, "_client", make_client(30_000))
    drilled.fake.add_topic(drilled.drill._topic, 1)
    drilled.drill._remove_topic()
    assert drilled.topics == [] and drilled.lines == []
    assert transport.now_ms - asked_ms[0] < 3_000


# ---- from another terminal -----------------------------------------------------------------------


@pytest.fixture
def left(drilled: Drilled) -> Drilled:
    """Brokers 2 and 3 are cut off, broker 1 names no other in its metadata, and a topic is left."""
    drilled.cut = {2, 3}
    drilled.fake.add_topic(f"{TOPIC_PREFIX}0a", 1)
    drilled.fake.add_topic("orders", 1)
    brokers = [
        StatusBroker(broker_id=one, host=address.host, port=address.port)
        for one, address in drilled.fake.brokers.items()
    ]

    def tell(fake: FakeCluster, broker: int, request: Message) -> Message | None:
        if broker in drilled.cut:
            return None
        return DescribeStatusResponse(broker_id=broker, brokers=brokers)

    drilled.fake.extra["DescribeStatus"] = tell
    return drilled


def test_another_terminal_ends_the_cut_and_removes_the_topic(run: Run, left: Drilled) -> None:
    code, out, err = run("drill", "cancel")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "broker 2 is connected again",
        "broker 3 is connected again",
        f"topic {TOPIC_PREFIX}0a is deleted",
    ]
    assert left.cut == set() and list(left.fake.topics) == ["orders"]
    code, out, _ = run("drill", "cancel")
    assert (code, out) == (0, "no drill is under way\n")
    told = json.loads(run("drill", "cancel", "--json")[1])
    assert told == {"ended": [], "silent": [], "topics_deleted": []}


def test_a_controller_that_was_cut_off_and_decides_nothing_does_not_hold_the_command_up(
    run: Run, left: Drilled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the deletion and answers never; the others elect another one meanwhile."""
    transport, asked_ms = FakeTransport(left.fake), list[int]()
    deletes = HANDLERS["DeleteTopics"]

    def delete(fake: FakeCluster, broker: int, request: Message) -> Message | None:
        if broker != 2:
            return deletes(fake, broker, request)
        fake.controller = 1
        asked_ms.append(transport.now_ms)
        return None

    def open_client(bootstrap: str, timeout_s: float) -> Client:
        timeout_ms = int(timeout_s * 1_000)
        return Client(left.fake.bootstrap, timeout_ms=timeout_ms, transport=transport)

    monkeypatch.setattr(drill_cancel, "open_client", open_client)
    left.fake.extra["DeleteTopics"] = delete
    left.fake.controller = 2
    code, out, err = run("drill", "cancel")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"topic {TOPIC_PREFIX}0a is deleted"
    assert transport.now_ms - asked_ms[0] < 3_000


def test_a_broker_that_does_not_answer_is_named(run: Run, left: Drilled) -> None:
    left.fake.down.add(3)
    _, out, _ = run("drill", "cancel")
    assert out.splitlines()[:2] == [
        "broker 2 is connected again",
        (
            "broker 3 does not answer: if it is in a drill, it reconnects by itself within 10 "
            "minutes"
        ),
    ]


def test_the_request_that_ends_a_cut_is_the_first_of_its_connection(left: Drilled) -> None:
    """A broker that is cut off takes no other, not even the question for its versions."""
    left.fake.asked.clear()
    left.drill._cut_brokers = {BrokerId(2): left.fake.brokers[2]}
    left.drill._cut_until_ms = 1_000
    left.drill._end_cut()
    assert left.fake.asked == [(2, "IsolateBroker")]

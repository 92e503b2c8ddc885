"""What waits for a peer's socket. Source: design section 5."""

from strandline.model.ids import BrokerId, GroupId
from strandline.replication.leader.send_queues import BulkQueues
from strandline.simulation.world.clock import HostClock, SimClock
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler

ONE, TWO = BrokerId(1), BrokerId(2)


class Waiting:
    """Groups that queue one append of 40 bytes each time they may, for as long as there is room."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        clock = SimClock(HostClock(self.scheduler), Process(self.scheduler, "host"))
        self.queues = BulkQueues(clock, limit_bytes=100)
        self.order: list[int] = []

    def send(self, peer: BrokerId, group: int) -> None:
        if not self.queues.has_room(peer):
            self.queues.wait(peer, GroupId(group), lambda: self.send(peer, group))
            return
        self.queues.add(peer, 40)
        self.order.append(group)

    def hand(self, peer: BrokerId, count: int) -> None:
        """The socket takes so many appends; the pass ends."""
        for _ in range(count):
            self.queues.on_handed(peer, 40)
        self.scheduler.run_until(self.scheduler.now_us + 1)


def test_a_peer_that_takes_nothing_is_queued_no_more_than_the_limit_and_one_append() -> None:
    waiting = Waiting()
    for group in range(10):
        waiting.send(ONE, group)
    assert (waiting.order, waiting.queues.queued_bytes) == ([0, 1, 2], 120)
    waiting.send(TWO, 99)
    assert waiting.order[-1] == 99, "the other one has a queue of its own"


def test_groups_go_on_in_turn_once_half_of_the_limit_is_free() -> None:
    waiting = Waiting()
    for group in range(8):
        waiting.send(ONE, group)
    waiting.hand(ONE, 1)
    assert waiting.order == [0, 1, 2]
    waiting.hand(ONE, 1)
    assert waiting.order == [0, 1, 2, 3, 4]
    waiting.hand(ONE, 3)
    assert waiting.order == [0, 1, 2, 3, 4, 5, 6, 7]


def test_a_group_that_is_led_anew_goes_on_as_its_present_leader() -> None:
    waiting = Waiting()
    for group in range(3):
        waiting.send(ONE, group)
    called: list[str] = []
    waiting.queues.wait(ONE, GroupId(7), lambda: called.append("before"))
    waiting.queues.wait(ONE, GroupId(7), lambda: called.append("now"))
    waiting.hand(ONE, 3)
    assert called == ["now"]

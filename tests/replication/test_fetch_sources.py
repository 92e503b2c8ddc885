"""Who waits for whom of two replicas of a region that lack the same. Source: decision 0022."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strandline.base.network import Lane
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, Index
from strandline.raft.leader.progress import Progress
from strandline.replication.catchup.fetch_sources import LANE_WAIT_EVERY_MS, LEADER, FetchSources
from strandline.replication.host.nearness import Nearness
from strandline.replication.leader.follower_stream import FollowerStream
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Ability

LEADS, THREE, FOUR = map(BrokerId, (1, 3, 4))
SETTINGS = ReplicationSettings()
NOTHING = Ability(0)
FIRST, COMMIT = Index(100), Index(1_000)


@dataclass
class Region:
    """Brokers 3 and 4 in the west, behind; broker 1 in the east leads. All is connected but what
    is in `down`; nobody can be ordered to lend before it has something `flushed`. `lacked`: what
    the release that runs there cannot do. What follows is of broker 4; `is_heard`: ever."""

    now_ms: int = 0
    down: set[tuple[BrokerId, Lane]] = field(default_factory=set)
    flushed: dict[BrokerId, Index] = field(default_factory=dict)
    has_been_compacted: bool = False
    lacked: Ability = NOTHING
    is_heard: bool = True
    is_silent: bool = False
    has_hung_up: bool = False
    is_stuck: bool = False

    def __post_init__(self) -> None:
        nearness = Nearness()
        west = Labels("west")
        nearness.place({LEADS: Labels("east"), THREE: west, FOUR: west})
        self.streams = {one: FollowerStream(SETTINGS) for one in (THREE, FOUR)}
        self.progress = {one: Progress(one, FIRST) for one in (THREE, FOUR)}
        for progress in self.progress.values():
            progress.is_probing = False
            progress.match_written = Index(FIRST - 1)
        shared = SimpleNamespace(
            clock=SimpleNamespace(monotonic_ms=lambda: self.now_ms),
            settings=SETTINGS,
            nearness=nearness,
            contacts=SimpleNamespace(
                can_do=lambda one, needed: self._is_known(one) and not needed & self.lacked,
                cannot_do=lambda one, needed: self._is_known(one) and bool(needed & self.lacked),
                is_peer_alive=lambda one: not (one == FOUR and self.is_silent),
                has_hung_up=lambda one: one == FOUR and self.has_hung_up,
            ),
            network=SimpleNamespace(is_connected=lambda *way: way not in self.down),
            throttle=SimpleNamespace(),
        )
        replica = SimpleNamespace(
            self_id=LEADS,
            log=SimpleNamespace(config=SimpleNamespace(has_been_compacted=self.has_been_compacted)),
            raft=SimpleNamespace(
                commit=COMMIT,
                transferring_to=None,
                progress=self.progress,
                peer_fetch_end=lambda one: self.flushed.get(one, Index(-1)),
                member_since=lambda _: Index(0),
            ),
        )
        self.fetch_sources = FetchSources(
            cast("Any", replica),
            cast("Any", shared),
            self.streams,
            lambda _: None,
            cast("Any", SimpleNamespace(is_stuck=lambda one: one == FOUR and self.is_stuck)),
            cast(
                "Any",
                SimpleNamespace(is_urgent=lambda _: False, is_copied_to=lambda _: False),
            ),
        )

    def _is_known(self, one: BrokerId) -> bool:
        return self.is_heard or one != FOUR

    def choose(self, peer: BrokerId) -> BrokerId | None:
        return self.fetch_sources.choose(peer, self.progress[peer].next_index)

    def send(self, peer: BrokerId) -> None:
        """The leader has sent it something, which is under way."""
        self.progress[peer].next_index = Index(500)
        self.streams[peer].on_sent(Index(499), 1_000_000, self.now_ms)


def test_of_two_that_lack_the_same_one_waits() -> None:
    region = Region()
    assert region.choose(THREE) == LEADER
    assert region.choose(FOUR) is None
    region.send(FOUR)
    assert region.choose(THREE) is None
    assert region.choose(FOUR) == LEADER


def test_who_has_caught_up_by_the_other_does_not_change_places_with_it() -> None:
    """It was served by the leader from there on, over a connection that had yet to gain speed, and
    the other was not to wait for that: 4 MB crossed twice."""
    region = Region()
    region.streams[THREE].fetch_source = FOUR
    assert region.choose(FOUR) == LEADER
    assert region.choose(THREE) is None


def test_who_is_asked_once_more_is_ahead_for_what_is_under_way() -> None:
    region = Region()
    region.send(FOUR)
    region.progress[FOUR].is_probing = True
    assert region.choose(THREE) is None


def test_who_is_asked_with_nothing_under_way_is_not_waited_for() -> None:
    """Where its log ends is not known."""
    region = Region()
    region.progress[THREE].is_probing = True
    assert region.choose(FOUR) == LEADER


def test_who_was_asked_in_vain_is_not_waited_for() -> None:
    """Each question would renew the patience with it, while nothing comes."""
    region = Region()
    region.send(FOUR)
    region.progress[FOUR].is_probing = True
    region.streams[FOUR].on_asked(0)
    assert region.choose(THREE) is None
    region.streams[FOUR].on_asked(1_000)
    assert region.choose(THREE) == LEADER


def test_who_cannot_be_ordered_yet_is_waited_for_until_the_resend_timeout() -> None:
    """From the moment on that it is the lane that is waited for; and then not for some time: each
    append would wait for as long."""
    region = Region(now_ms=60_000)
    region.progress[FOUR].is_probing = True
    region.down.add((FOUR, Lane.CONTROL))
    assert region.choose(THREE) == LEADER
    region.now_ms += SETTINGS.resend_timeout_ms
    region.progress[FOUR].is_probing = False
    region.send(FOUR)
    assert region.choose(THREE) is None
    region.now_ms += SETTINGS.resend_timeout_ms - 1
    assert region.choose(THREE) is None
    region.now_ms += 1
    assert region.choose(THREE) == LEADER
    region.now_ms += SETTINGS.resend_timeout_ms
    assert region.choose(THREE) == LEADER


def test_lanes_that_break_again_and_again_hold_nobody_up() -> None:
    """One came up each time, and the other one never: each break was a reason to wait anew."""
    region = Region()
    region.send(FOUR)
    region.down.add((FOUR, Lane.CONTROL))
    waits = 0
    for _ in range(200):
        waits += region.choose(THREE) is None
        region.now_ms += SETTINGS.resend_timeout_ms // 2
        region.streams[FOUR].progress_ms = region.now_ms
        region.fetch_sources.on_gone(FOUR)
    assert waits * SETTINGS.resend_timeout_ms // 2 <= 200 * SETTINGS.resend_timeout_ms // 10


def test_who_can_be_ordered_after_all_lends_at_once() -> None:
    """Though its lane came up too late: where it took 2.4 s the leader served both for 10 s."""
    region = Region()
    region.send(FOUR)
    region.down.add((FOUR, Lane.CONTROL))
    assert region.choose(THREE) is None
    region.now_ms = SETTINGS.resend_timeout_ms
    assert region.choose(THREE) == LEADER
    region.down.clear()
    region.flushed[FOUR] = Index(499)
    region.streams[FOUR].progress_ms = region.now_ms
    assert region.choose(THREE) == FOUR


def test_a_lane_that_breaks_later_is_waited_for_as_long_again() -> None:
    region = Region()
    region.send(FOUR)
    region.down.add((FOUR, Lane.CONTROL))
    assert region.choose(THREE) is None
    region.now_ms = LANE_WAIT_EVERY_MS
    assert region.choose(THREE) is None
    region.now_ms += SETTINGS.resend_timeout_ms - 1
    assert region.choose(THREE) is None


def test_who_is_connected_and_says_nothing_is_not_waited_for() -> None:
    region = Region()
    region.send(FOUR)
    assert region.choose(THREE) is None
    region.now_ms = SETTINGS.resend_timeout_ms
    assert region.choose(THREE) == LEADER


def test_who_was_not_heard_yet_may_be_able_to_lend() -> None:
    """Its first heartbeat comes over the lane that is not up; over a whole one it would have."""
    region = Region(is_heard=False)
    region.send(FOUR)
    assert region.choose(THREE) == LEADER
    region.down.add((FOUR, Lane.CONTROL))
    assert region.choose(THREE) is None


@pytest.mark.parametrize("is_connected", [False, True])
@pytest.mark.parametrize("how", ["is_silent", "has_hung_up"])
def test_who_is_dead_is_not_waited_for(how: str, *, is_connected: bool) -> None:
    region = Region()
    region.send(FOUR)
    if not is_connected:
        region.down.add((FOUR, Lane.CONTROL))
    assert region.choose(THREE) is None
    setattr(region, how, True)
    assert region.choose(THREE) == LEADER


def test_who_should_have_acknowledged_long_ago_is_not_waited_for() -> None:
    region = Region()
    region.send(FOUR)
    assert region.choose(THREE) is None
    region.is_stuck = True
    assert region.choose(THREE) == LEADER


@pytest.mark.parametrize("lacked", [Ability.PEER_CATCHUP, Ability.PEER_CATCHUP_COMPACTED])
def test_who_could_not_lend_anyway_is_not_waited_for(lacked: Ability) -> None:
    """Its release cannot; where that is about compacted logs, of such a log."""
    region = Region(has_been_compacted=lacked is Ability.PEER_CATCHUP_COMPACTED, lacked=lacked)
    region.send(FOUR)
    region.down.add((FOUR, Lane.CONTROL))
    assert region.choose(THREE) == LEADER


def test_who_has_lost_its_log_is_not_waited_for() -> None:
    region = Region()
    region.send(FOUR)
    region.down.add((FOUR, Lane.CONTROL))
    region.progress[FOUR].rejoin_marker = Index(7)
    assert region.choose(THREE) == LEADER


def test_who_is_not_served_is_not_waited_for() -> None:
    region = Region()
    region.send(FOUR)
    region.down |= {(FOUR, lane) for lane in Lane}
    assert region.choose(THREE) == LEADER


def test_a_question_carries_nothing_where_the_region_has_others_at_all() -> None:
    """They are not connected, and may be in a moment."""
    region = Region()
    region.down |= {(FOUR, lane) for lane in Lane}
    assert region.fetch_sources.has_neighbours(THREE)

"""Repair of a region that is down is held across changes of the controller, until the region is
back or an operator decides.

Source: docs/decisions/0018-outages.md."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world
from tests.broker.test_balancing import CLUSTER, TOPIC_SCOPE, alter, findings, want

from strandline.cli.commands import zone
from strandline.config.cluster import validate_cluster_config
from strandline.controller.commands import ResourceType
from strandline.controller.outage_commands import DomainAnswer, RuleDomain
from strandline.model.cluster import UNKNOWN_MS, Domain, Outage, Ruling
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_zones import (
    DescribeZonesRequest,
    DescribeZonesResponse,
)
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse

PAGE = Path(__file__).parents[2] / "docs/operating/outages.md"
LOST_AFTER_MS = 8_000
HELD_BY = (1, 2, 4)
REGIONS = {1: "east", 2: "south", 3: "north", 4: "west", 5: "west"}
WEST = ("west",)
TOLD = "region: region west is down since 00:00 UTC, 2 of 2 brokers silent"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic whose policy any three of them keep, a producer that goes on."""
    with moving_world(monkeypatch, HELD_BY, REGIONS) as made:
        alter(made, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        want(made, 1, 2, 3, 4, 5)
        made.advance(2 * LOST_AFTER_MS)
        assert set(made.known.replicas) == set(HELD_BY)
        yield made


def lose_west(world: MovingWorld) -> None:
    for broker in (4, 5):
        world.hosts[broker].fail_power()


def start_west(world: MovingWorld) -> None:
    for broker in (4, 5):
        world.hosts[broker].start()
    world.until_started(4, 5)


def waits(world: MovingWorld) -> dict[str, str]:
    return dict(list(findings(world).waits.found))


def downs(world: MovingWorld, broker: int) -> dict[Domain, Outage]:
    """What a broker knows to be down or ruled, whenever that began."""
    outages = world.broker(broker).controller.cluster.outages
    return {domain: replace(one, since_ms=UNKNOWN_MS) for domain, one in outages.items()}


def rule(world: MovingWorld, ruling: Ruling) -> None:
    answer = world.submit(RuleDomain(WEST, ruling), at=world._controller_known_at())
    assert isinstance(answer, DomainAnswer), answer


def test_of_a_region_that_is_down_nothing_is_made_anew_and_it_catches_up(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    lose_west(world)
    world.advance(4 * LOST_AFTER_MS)
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    assert list(waits(world)) == ["zone-down"]
    assert waits(world)["zone-down"].endswith("or you run `strandline zone release west`")
    for broker in (1, 2, 3):
        assert downs(world, broker) == {WEST: Outage(is_down=True)}
    start_west(world)
    world.finish(*world.known.replicas)
    world.advance(4 * LOST_AFTER_MS)
    assert findings(world).begun == {} and set(world.known.replicas) == set(HELD_BY)
    assert world.broker(1).controller.cluster.outages == {}
    told = [one for one in caplog.messages if one.startswith("region: ")]
    assert len(told) == 2 and told[1].startswith("region: region west is back, 2 of 2")


def test_a_single_broker_is_repaired_as_before(world: MovingWorld) -> None:
    world.hosts[4].fail_power()
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    assert findings(world).begun == {"broker-lost": 1}


def test_the_next_controller_holds_too_and_tells_nothing_anew(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    lose_west(world)
    world.advance(LOST_AFTER_MS)
    for _ in range(3):
        world.lose_power_of(world.controller_leader(), for_ms=500)
        world.until(lambda: world.controller_leader() != 0)
        world.advance(LOST_AFTER_MS)
        assert not world.known.is_moving
    assert len([one for one in caplog.messages if one.startswith("region: ")]) == 1
    start_west(world)
    world.finish(*world.known.replicas)
    assert findings(world).begun == {}


def test_who_is_still_missing_when_the_region_is_back_is_given_time_by_the_next_controller_too(
    world: MovingWorld,
) -> None:
    lost_after_ms = 5 * LOST_AFTER_MS  # Longer than the next controller looks by itself.
    alter(world, CLUSTER, "", "broker.lost.after.ms", str(lost_after_ms))
    alter(world, CLUSTER, "", "outage.high.percent", "50")
    lose_west(world)
    world.advance(2 * lost_after_ms)
    world.hosts[5].start()
    world.until(lambda: world.broker(1).controller.cluster.outages == {})
    began_us = world.scheduler.now_us
    world.lose_power_of(world.controller_leader(), for_ms=500)
    world.advance(lost_after_ms // 2)
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    assert world.scheduler.now_us - began_us >= lost_after_ms * 1_000
    assert findings(world).begun == {"broker-lost": 1}


@pytest.mark.parametrize("ruling", [Ruling.RELEASE, Ruling.LOST])
def test_what_is_released_or_declared_lost_is_made_anew(world: MovingWorld, ruling: Ruling) -> None:
    lose_west(world)
    world.advance(4 * LOST_AFTER_MS)
    rule(world, ruling)
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    start_west(world)
    world.finish(*world.known.replicas)
    world.until(lambda: world.broker(1).controller.cluster.outages == {})
    assert findings(world).begun == {"broker-lost": 1}


def test_a_hold_by_hand_outlives_the_controller_and_holds_one_broker(world: MovingWorld) -> None:
    rule(world, Ruling.HOLD)
    world.hosts[4].fail_power()
    world.advance(LOST_AFTER_MS)
    world.lose_power_of(world.controller_leader(), for_ms=500)
    world.advance(4 * LOST_AFTER_MS)
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    rule(world, Ruling.RELEASE)
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)


def test_a_hold_spares_who_is_silent_and_keeps_nobody_from_moving_what_is_wanted_elsewhere(
    world: MovingWorld,
) -> None:
    rule(world, Ruling.HOLD)
    want(world, 1, 2, 3)
    world.until(lambda: set(world.known.replicas) == {1, 2, 3} and not world.known.is_moving)
    want(world, 1, 2, 4)
    world.until(lambda: set(world.known.replicas) == {1, 2, 4} and not world.known.is_moving)
    world.finish(1, 2, 4)


def links(world: MovingWorld, broker: int) -> list[tuple[BrokerId, BrokerId]]:
    """Of a broker, both ways."""
    others = [BrokerId(one) for one in world.hosts if one != broker]
    this = BrokerId(broker)
    return [(one, this) for one in others] + [(this, one) for one in others]


def cut_from_the_controller(world: MovingWorld, *brokers: int) -> None:
    controller = BrokerId(world.controller_leader())
    for broker in map(BrokerId, brokers):
        for source, target in ((controller, broker), (broker, controller)):
            world.fabric.cut(source, target)
    world.advance(4 * LOST_AFTER_MS)
    assert world.controller_leader() == controller


def test_a_broker_that_only_the_controller_does_not_hear_is_not_replaced(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    cut_from_the_controller(world, 4)
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    assert "cut-off" in waits(world)
    assert any(
        one.startswith("network-cut: heartbeats of broker 4 in region west")
        for one in caplog.messages
    )


def test_no_controller_takes_a_region_that_is_merely_cut_off_for_down(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A new controller has no reports yet of which brokers hear which."""
    caplog.set_level(logging.INFO, "strandline.controller")
    regions = {1: "east", 2: "east", 3: "east", 4: "north", 5: "west"}
    with moving_world(monkeypatch, HELD_BY, regions) as world:
        alter(world, CLUSTER, "", "broker.lost.after.ms", "60000")
        alter(world, CLUSTER, "", "outage.brokers.min", "1")
        world.advance(20_000)
        for one in (1, 2, 3):
            for source, target in ((one, 5), (5, one)):
                world.fabric.cut(BrokerId(source), BrokerId(target))
        world.advance(60_000)
        for _ in range(3):
            before = world.controller_leader()
            world.lose_power_of(before, for_ms=500)
            world.until(lambda last=before: world.controller_leader() not in (0, last))
            world.advance(20_000)
        assert not [one for one in caplog.messages if one.startswith("region: ")]
        assert [one for one in caplog.messages if one.startswith("network-cut: ")]


def described(world: MovingWorld) -> DescribeZonesResponse:
    leader = world._controller_known_at()
    return world.ask(leader, DescribeZonesRequest(), DescribeZonesResponse, 0)


def shown_status(world: MovingWorld, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of `strandline zone status`."""
    zone._print(described(world))
    return capsys.readouterr().out.splitlines()


def test_the_controller_describes_zones_and_takes_rulings(world: MovingWorld) -> None:
    lose_west(world)
    world.advance(4 * LOST_AFTER_MS)
    found = described(world)
    (west,) = [one for one in found.zones if one.is_down]
    assert (west.name, west.silent, west.is_held, west.waiting_count) == ("west", [4, 5], True, 1)
    assert west.down_ms >= 3 * LOST_AFTER_MS
    assert [one.kind for one in found.happenings] == ["region"]
    assert [one.broker_id for one in found.brokers if one.verdict == "silent"] == [4, 5]
    request = RuleZoneRequest(region="west", ruling="release", for_ms=60_000)
    for broker in (1, 2):  # Whoever is asked; saying it twice does no harm.
        answer = world.ask(broker, request, RuleZoneResponse, 0)
        assert answer.error_code == 0 and answer.ruling == "release" and answer.ruling_until_ms > 0
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)


def waiting(world: MovingWorld) -> int:
    (west,) = [one for one in described(world).zones if one.name == "west"]
    return west.waiting_count


@pytest.mark.parametrize("ruling", [Ruling.HOLD, Ruling.RELEASE])
def test_partitions_wait_for_a_region_whether_it_is_held_or_no_other_broker_may_have_them(
    monkeypatch: pytest.MonkeyPatch, ruling: Ruling
) -> None:
    regions = {1: "east", 2: "south", 3: "south", 4: "west", 5: "west"}
    with moving_world(monkeypatch, HELD_BY, regions) as world:
        alter(world, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        alter(world, TOPIC_SCOPE, TOPIC, "placement.policy", "survive: region")
        world.advance(2 * LOST_AFTER_MS)
        assert waiting(world) == 0
        lose_west(world)
        world.advance(4 * LOST_AFTER_MS)
        rule(world, ruling)
        world.advance(LOST_AFTER_MS)
        assert list(waits(world)) == ["zone-down" if ruling is Ruling.HOLD else "needs-broker"]
        assert waiting(world) == 1 and not world.known.is_moving
        start_west(world)
        world.finish(*world.known.replicas)
        world.advance(2_000)  # The next look sees it.
        assert waiting(world) == 0


def test_partitions_with_an_observer_that_is_away_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with moving_world(monkeypatch, (1, 2, 3), REGIONS) as world:
        world.balance((1, 2, 3), (4,))
        world.finish(1, 2, 3, observers=(4,))
        lose_west(world)
        world.until(lambda: WEST in world.broker(1).controller.cluster.outages)
        assert waiting(world) == 1
        start_west(world)
        world.finish(1, 2, 3, observers=(4,))


def test_a_region_has_marks_of_its_own_from_the_next_look_on(world: MovingWorld) -> None:
    alter(world, CLUSTER, "", "outage.brokers.min", "1")
    world.hosts[4].fail_power()
    world.advance(LOST_AFTER_MS // 2)
    assert not [one.name for one in described(world).zones if one.is_down]
    alter(world, CLUSTER, "", "outage.marks", "*=20-30,west=60-100")
    world.until(lambda: WEST in world.broker(1).controller.cluster.outages)
    found = {one.name: (one.low_percent, one.high_percent) for one in described(world).zones}
    assert found["west"] == (60, 100) and found["east"] == (20, 30)
    assert [one.name for one in described(world).zones if one.is_down] == ["west"]


def test_a_cut_is_shown_as_on_the_page_until_the_link_is_mended(
    world: MovingWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = partial(shown_status, world, capsys)
    section = PAGE.read_text().partition("## A network is cut\n")[2]
    lines = section.partition("```text\n")[2].partition("\n```")[0].splitlines()
    nothing = "All zones and regions are up."
    world.until(lambda: world.controller_leader() != 0)
    assert shown()[-1] == nothing and REGIONS[world.controller_leader()] == "east"
    ways = [(BrokerId(1), BrokerId(4)), (BrokerId(4), BrokerId(1))]
    for way in ways:
        world.fabric.cut(*way)
    world.advance(4 * LOST_AFTER_MS)
    assert world.controller_leader() == 1
    assert shown()[-2:] == lines and nothing not in shown()
    for way in ways:
        world.fabric.heal(*way)
    world.advance(2 * LOST_AFTER_MS)
    assert shown()[-1] == nothing


def test_rulings_that_make_no_sense_are_refused(world: MovingWorld) -> None:
    def ask(**values: str | int) -> RuleZoneResponse:
        request = RuleZoneRequest(**values)  # type: ignore[arg-type]
        return world.ask(1, request, RuleZoneResponse, 0)

    assert ask(region="west", ruling="maybe").error_code == Error.INVALID_REQUEST
    assert ask(region="west", ruling="hold", for_ms=0).error_code == Error.INVALID_REQUEST
    assert "no broker is in" in (ask(region="mars", ruling="hold").error_message or "")
    refused = ask(region="west", ruling="lost")
    assert refused.error_code == Error.POLICY_VIOLATION
    assert refused.error_message == "region west is not lost: brokers 4, 5 of its 2 are heard"


def test_a_broker_that_is_cut_off_from_the_controller_is_replaced_once_it_is_released(
    world: MovingWorld,
) -> None:
    cut_from_the_controller(world, 4)
    request = RuleZoneRequest(region="west", ruling="release")
    assert world.ask(1, request, RuleZoneResponse, 0).error_code == 0
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    assert findings(world).begun == {"broker-lost": 1}
    for source, target in links(world, 4):
        world.fabric.heal(source, target)
    world.until(lambda: world.broker(1).controller.cluster.outages == {})
    # It did not hear that it is no voter any more; nobody elects it.
    assert all(one.startswith("4 stands for election") for one in world.violations)
    world.violations.clear()
    world.finish(*world.known.replicas)


def test_a_region_whose_dead_brokers_are_decommissioned_is_not_told_to_be_back(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    lose_west(world)
    world.advance(4 * LOST_AFTER_MS)
    for broker in ("4", "5"):
        alter(world, ResourceType.BROKER, broker, "broker.decommission", "true")
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    assert downs(world, 1) == {WEST: Outage(is_down=True)}
    assert not [one for one in caplog.messages if "is back" in one]


def test_a_loss_that_is_declared_before_it_is_told_holds(world: MovingWorld) -> None:
    lose_west(world)
    heard = world.broker(world.controller_leader()).controller.alive
    world.until(lambda: not {4, 5} & heard())
    world.advance(500)  # Nor by the others.
    request = RuleZoneRequest(region="west", ruling="lost")
    answer = world.ask(1, request, RuleZoneResponse, 0)
    assert answer.error_code == 0 and not answer.is_down
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    assert [one.ruling for one in described(world).zones if one.name == "west"] == ["lost"]
    assert findings(world).begun == {"broker-lost": 1}


def test_a_region_that_is_merely_cut_off_is_not_declared_lost(world: MovingWorld) -> None:
    cut_from_the_controller(world, 4, 5)
    request = RuleZoneRequest(region="west", ruling="lost")
    answer = world.ask(1, request, RuleZoneResponse, 0)
    assert answer.error_code == Error.POLICY_VIOLATION
    assert (answer.error_message or "").endswith("are heard, though not by the controller")


def test_a_ruling_is_told_as_soon_as_it_holds_and_is_over(world: MovingWorld) -> None:
    """Not with the next look, which may be a second away."""
    for ruling, told in (("hold", "hold"), ("release", "")):
        request = RuleZoneRequest(region="west", ruling=ruling)
        assert world.ask(1, request, RuleZoneResponse, 0).error_code == 0
        assert [one.ruling for one in described(world).zones if one.name == "west"] == [told]
        world.advance(2_000)  # The next look sees it.


def test_only_the_controller_knows_the_zones(world: MovingWorld) -> None:
    other = next(one for one in (1, 2, 3) if one != world._controller_known_at())
    answer = world.ask(other, DescribeZonesRequest(), DescribeZonesResponse, 0)
    assert answer.error_code == Error.NOT_CONTROLLER


class Posted:
    """What a broker posts, and where."""

    def __init__(self) -> None:
        self.url = ""
        self.told: list[dict[str, object]] = []

    def aim(self, url: str) -> None:
        self.url = url

    def post(self, about: str, body: bytes) -> None:
        told = json.loads(body)
        assert about == f"{told['class']} {told['subject']}"
        if self.url:
            self.told.append(told)


def collect_posts(world: MovingWorld) -> dict[int, Posted]:
    found = {broker: Posted() for broker in (1, 2, 3)}
    for broker, posted in found.items():
        world.broker(broker).services.balancing.outages.poster = posted
    return found


def test_alarms_are_posted_where_that_is_configured(world: MovingWorld) -> None:
    posted = collect_posts(world)[world.controller_leader()]
    world.hosts[5].fail_power()
    world.advance(LOST_AFTER_MS)
    assert posted.told == [] and posted.url == ""
    alter(world, CLUSTER, "", "alarm.webhook.url", "http://alarms.example/x")
    world.hosts[4].fail_power()
    world.advance(LOST_AFTER_MS)
    start_west(world)
    world.advance(LOST_AFTER_MS)
    assert posted.url == "http://alarms.example/x"
    assert [(one["class"], one["subject"], one["state"]) for one in posted.told] == [
        ("region", "region west", "begun"),
        ("broker", "broker 5", "over"),
        ("region", "region west", "over"),
    ]
    assert str(posted.told[0]["text"]).endswith("2 of 2 brokers silent")


def test_the_next_controller_posts_what_goes_on_and_the_one_before_it_nothing_more(
    world: MovingWorld,
) -> None:
    alter(world, CLUSTER, "", "alarm.webhook.url", "http://alarms.example/x")
    everybody = collect_posts(world)
    lose_west(world)
    world.advance(LOST_AFTER_MS)
    before = world.controller_leader()
    assert [one["state"] for one in everybody[before].told] == ["begun"]
    for source, target in links(world, before):
        world.fabric.cut(source, target)
    world.until(lambda: world._controller_known_at() not in (0, before))
    for source, target in links(world, before):
        world.fabric.heal(source, target)
    world.advance(LOST_AFTER_MS)
    after = everybody[world.controller_leader()]
    of_west = [one["state"] for one in after.told if one["subject"] == "region west"]
    assert of_west == ["begun"]
    assert everybody[before].url == "" and after.url


@pytest.mark.parametrize("url", ["alarms.example", "file:///etc/passwd", "http://", "http:// x"])
def test_what_is_no_url_is_no_webhook(url: str) -> None:
    assert validate_cluster_config("alarm.webhook.url", url) is not None
    assert validate_cluster_config("alarm.webhook.url", "https://alarms.example/a?b=c") is None
    assert validate_cluster_config("alarm.webhook.url", "") is None


def test_what_was_placed_against_the_policy_meanwhile_is_undone_when_the_region_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    regions = {1: "east", 2: "south", 3: "south", 4: "west", 5: "west"}
    with moving_world(monkeypatch, HELD_BY, regions) as world:
        alter(world, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        alter(world, CLUSTER, "", "balancer.best.effort.enable", "true")
        alter(world, TOPIC_SCOPE, TOPIC, "placement.policy", "survive: region")
        world.advance(2 * LOST_AFTER_MS)
        lose_west(world)
        world.advance(4 * LOST_AFTER_MS)
        assert set(world.known.replicas) == set(HELD_BY) and not world.known.is_moving
        rule(world, Ruling.RELEASE)
        world.until(lambda: set(world.known.replicas) == {1, 2, 3} and not world.known.is_moving)
        assert findings(world).begun == {"best-effort": 1}
        start_west(world)
        world.until(lambda: bool({4, 5} & set(world.known.replicas)) and not world.known.is_moving)
        assert {regions[one] for one in world.known.replicas} == {"east", "south", "west"}
        world.finish(*world.known.replicas)

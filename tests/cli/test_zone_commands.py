"""What `strandline zone` asks of a cluster, and what it says.

Source: docs/decisions/0018-outages.md."""

import io
import json
import sys
from copy import copy

import pytest
from tests.cli.command_line import Run, cluster, run
from tests.client.fake_cluster import FakeCluster

from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_zones import (
    DescribedZone,
    DescribeZonesResponse,
    SeenBroker,
    ZoneHappening,
)
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse
from strandline.protocol.table import Message

__all__ = ["cluster", "run"]  # The fixtures.

TEXT = "zone b is down since 12:03 UTC, 3 of 3 brokers silent"
WEST_B = DescribedZone(
    region="west",
    zone="b",
    name="b",
    is_down=True,
    is_held=True,
    down_ms=610_000,
    brokers=[7, 8, 9],
    silent=[7, 8, 9],
    waiting_count=40,
    low_percent=50,
    high_percent=66,
)


class Zones:
    """The controller's answers."""

    def __init__(self, fake: FakeCluster) -> None:
        self.asked: list[RuleZoneRequest] = []
        self.answer = RuleZoneResponse(is_down=True, ruling="lost")
        self.described = DescribeZonesResponse(
            zones=[
                DescribedZone(region="west", name="west", brokers=[4, 5, 6, 7, 8, 9]),
                DescribedZone(region="east", zone="a", name="east/a", brokers=[1, 2, 3]),
                DescribedZone(region="west", zone="a", name="west/a", brokers=[4, 5, 6]),
                WEST_B,
            ],
            happenings=[ZoneHappening("zone", "zone b", TEXT, 610_000)],
            brokers=[
                SeenBroker(1, "heard", ["zone west/a"], []),
                SeenBroker(7, "silent", [], ["zone east/a", "zone west/a"]),
            ],
        )
        fake.extra = {"RuleZone": self._rule, "DescribeZones": lambda *_: self.described}

    def _rule(self, fake: FakeCluster, broker: int, request: Message) -> Message:
        assert isinstance(request, RuleZoneRequest) and broker == fake.controller
        self.asked.append(request)
        return self.answer


@pytest.fixture
def zones(cluster: FakeCluster) -> Zones:
    """Three zones in two regions, one of them down."""
    return Zones(cluster)


def test_the_status_tells_of_zones_what_is_so_for_their_region(run: Run, zones: Zones) -> None:
    region, _, zone, known = zones.described.zones
    down = zones.described.zones[3] = copy(known)
    region.is_down = region.is_held = zone.is_held = True

    def repair() -> list[str]:
        _, out, _ = run("zone", "status")
        return [out.splitlines()[row][out.index("REPAIR") :].split("  ")[0] for row in (1, 3, 4)]

    assert repair() == ["held until it returns", "held with region west", "held until it returns"]
    region.ruling, region.is_held, zone.is_held, down.is_held = "release", False, False, False
    assert repair() == ["released", "released with region west", "released with region west"]


def answer_with(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_the_status_tells_what_is_down_and_what_waits(run: Run, zones: Zones) -> None:
    code, out, _ = run("zone", "status")
    assert code == 0 and out.splitlines() == [
        "NAME    LEVEL   STATE            HEARD  MARKS    SILENT  REPAIR                 WAITING",
        "west    region  up                 5/6  -        7       as usual                     0",
        "east/a  zone    up                 3/3  -        -       as usual                     0",
        "west/a  zone    up                 3/3  -        -       as usual                     0",
        "b       zone    down for 10 min    0/3  50-66 %  7,8,9   held until it returns       40",
        f"zone: {TEXT}",
        "broker 7: its heartbeats reach nowhere; missing in zone east/a, zone west/a",
    ]
    told = json.loads(run("zone", "status", "--json")[1])
    assert told["zones"][3] == {
        "name": "b",
        "level": "zone",
        "region": "west",
        "down": True,
        "held": True,
        "down_ms": 610_000,
        "ruling": None,
        "until_ms": None,
        "brokers": [7, 8, 9],
        "silent": [7, 8, 9],
        "planned": [],
        "waiting": 40,
        "low_percent": 50,
        "high_percent": 66,
    }
    assert told["happenings"][0]["class"] == "zone"
    assert told["brokers"][1]["not_heard_from"] == ["zone east/a", "zone west/a"]


def test_a_cluster_without_labels_is_told_how_to_get_them(run: Run, zones: Zones) -> None:
    zones.described = DescribeZonesResponse()
    assert run("zone", "status")[1].splitlines() == [
        "no broker has a region or zone label: set them with `strandline broker label`",
        "All zones and regions are up.",
    ]


def test_partitions_that_go_on_with_less_are_told_of_where_nothing_is_down(
    run: Run, zones: Zones
) -> None:
    text = "fewer voters than placement requires: 1 partition, orders-0"
    zones.described = DescribeZonesResponse(
        happenings=[ZoneHappening("fewer-voters", "partitions", text, 60_000)]
    )
    assert run("zone", "status")[1].splitlines()[1:] == [
        f"fewer-voters: {text}",
        "All zones and regions are up.",
    ]


def test_a_hold_is_asked_for_with_its_end(run: Run, zones: Zones) -> None:
    zones.answer = RuleZoneResponse(ruling="hold", ruling_until_ms=1_700_000_000_000)
    code, out, _ = run("zone", "hold", "west/a", "--for", "30m")
    assert (code, out) == (0, "zone west/a is held by hand until 2023-11-14 22:13 UTC\n")
    assert zones.asked == [RuleZoneRequest("west", "a", "hold", 1_800_000)]
    zones.answer = RuleZoneResponse()
    assert run("zone", "release", "west")[1] == "region west is no longer held\n"
    assert zones.asked[1] == RuleZoneRequest("west", "", "release", -1)


def test_who_declares_a_zone_lost_types_its_name_again(
    run: Run, zones: Zones, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, "yes\n")
    code, out, err = run("zone", "declare-lost", "b")
    assert code == 1 and out == "" and not zones.asked
    assert "3 of 3 brokers of zone b are silent; 40 partitions wait for them." in err
    assert "the name does not match: nothing done" in err
    answer_with(monkeypatch, "b\n")
    code, out, _ = run("zone", "declare-lost", "west/b", "--json")
    assert code == 0 and zones.asked == [RuleZoneRequest("west", "b", "lost", -1)]
    assert json.loads(out) == {"name": "b", "down": True, "ruling": "lost", "until_ms": None}


def test_who_is_silent_in_maintenance_may_be_declared_lost_too(
    run: Run, zones: Zones, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = zones.described.zones[3]
    zone.planned, zone.silent = zone.silent, []
    zones.described.brokers = [SeenBroker(one, "silent", [], []) for one in zone.planned]
    answer_with(monkeypatch, "b\n")
    code, _, err = run("zone", "declare-lost", "b")
    assert code == 0 and len(zones.asked) == 1
    assert "3 of 3 brokers of zone b are silent" in err


def test_with_yes_nobody_is_asked(run: Run, zones: Zones, monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, "")
    code, out, err = run("zone", "declare-lost", "b", "--yes")
    assert (code, out, err) == (0, "zone b is declared lost\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("hold", "nowhere"), "no zone or region 'nowhere'; known: region west, zone east/a"),
        (("hold", "a"), "zone a is ambiguous: write east/a or west/a"),
        (("hold", ""), "zone name is empty; see `strandline zone status`"),
        (("hold", "b", "--region"), "no zone or region 'b'"),
        (("hold", "b", "--for", "soon"), "--for 'soon': expected a number of 1 to 999999"),
        (
            ("hold", "b", "--for", "0m"),
            "--for '0m': expected a number of 1 to 999999 and a unit, as in 30m, 12h or 7d",
        ),
        (
            ("declare-lost", "east/a"),
            "error: zone east/a is not lost: all its brokers are reachable",
        ),
    ],
)
def test_mistakes_are_told(run: Run, zones: Zones, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = run("zone", *arguments)
    assert code == 1 and out == "" and said in err and not zones.asked


def test_what_the_controller_refuses_is_told(run: Run, zones: Zones) -> None:
    text = "zone b is not lost: brokers 8, 9 of its 3 are heard"
    zones.answer = RuleZoneResponse(error_code=Error.POLICY_VIOLATION, error_message=text)
    code, _, err = run("zone", "declare-lost", "b", "--yes")
    assert code == 1 and text in err


def test_an_older_controller_is_told_of(run: Run, cluster: FakeCluster, zones: Zones) -> None:
    cluster.max_versions = {20_008: -1}
    code, _, err = run("zone", "status")
    assert code == 1 and "does not offer DescribeZones" in err


def test_a_region_of_one_dead_broker_is_not_called_up(run: Run, zones: Zones) -> None:
    """One silent broker takes no region down (`outage.brokers.min`); it is not up, either."""
    zones.described = DescribeZonesResponse(
        zones=[DescribedZone(region="south", name="south", brokers=[5], silent=[5])],
        brokers=[SeenBroker(5, "silent", [], ["region east"])],
        happenings=[ZoneHappening("broker", "broker 5", "broker 5 is silent", 60_000)],
    )
    _, out, _ = run("zone", "status")
    assert out.splitlines()[1].split()[:6] == ["south", "region", "no", "broker", "heard", "0/1"]
    zones.described.zones[0].silent, zones.described.happenings = [], []
    out = run("zone", "status")[1]
    assert out.splitlines()[1].split()[:6] == ["south", "region", "no", "broker", "heard", "0/1"]
    assert "All zones and regions are up." not in out and "broker 5 is silent; " in out


def test_a_controller_that_does_not_know_yet_says_so(run: Run, zones: Zones) -> None:
    zones.described = DescribeZonesResponse(
        zones=[DescribedZone(region="south", name="south", brokers=[5])],
        brokers=[SeenBroker(5, "silent", [], ["region east"])],
        is_unsettled=True,
    )
    out = run("zone", "status")[1].splitlines()
    assert out[1].split()[:6] == ["south", "region", "not", "known", "yet", "0/1"]
    assert out[2].startswith("The controller began to lead a moment ago: it does not know yet")
    assert json.loads(run("zone", "status", "--json")[1])["settled"] is False

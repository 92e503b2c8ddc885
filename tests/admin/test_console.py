"""The page for people: who votes and who observes, who is heard, what is down; nothing of it runs.

Source: decision 0036."""

import base64
import hashlib
import re
from collections.abc import Coroutine, Iterator

import pytest
from tests.admin.reading_html import Read
from tests.admin.scrapes import controller_of
from tests.broker.cluster_world import BROKERS, ClusterWorld, joined
from tests.broker.moving_world import TOPIC, MovingWorld, moving_world

from strandline.admin.api import Api
from strandline.admin.console.pages import Console
from strandline.admin.console.rendering import HTML, REFRESH_S
from strandline.admin.facts import STEP
from strandline.admin.http_server import PLAIN, Answer
from strandline.admin.last_page import LastPage
from strandline.admin.pace import Pace
from strandline.controller.outages.voting import BEGUN_MS, OVER_MS
from strandline.model.ids import BrokerId

DOMAINS = {1: "east", 2: "east", 3: "west", 4: "west"}
HOSTILE = """<script>alert("1")</script>'&"""
MARKS = "<img src=x onerror=alert(1)>\u202egnp.exe\u2066\x9b\x1b[2J"
"""Of a name: markup, and marks that reverse or hide what follows."""


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Four brokers in two regions, a topic of two partitions; the controller is in the east."""
    with joined(ClusterWorld(BROKERS, regions=DOMAINS)) as made:
        made.create_topic("t", partitions=2)
        if controller_of(made) == 3:
            made.controller(3).transfer_leadership(BrokerId(1))
        made.advance(5_000)
        yield made


def console(world: ClusterWorld, broker: int, *, is_ready: bool = True) -> Console:
    asked = world.broker(broker)
    return Console(asked, LastPage(asked.services.clock), is_ready=lambda: is_ready)


def answered(
    world: ClusterWorld, broker: int, page: Coroutine[object, object, Answer], *, status: int = 200
) -> tuple[Answer, str]:
    answer = world.do(broker, page)
    assert (answer.status, answer.content_type) == (status, HTML)
    return answer, b"".join(answer.body).decode()


def read(
    world: ClusterWorld, broker: int, page: Coroutine[object, object, Answer], *, status: int = 200
) -> Read:
    found = Read(answered(world, broker, page, status=status)[1])
    found.expect_safe()
    return found


def index(world: ClusterWorld, broker: int) -> Read:
    return read(world, broker, console(world, broker).index())


def topics(world: ClusterWorld, broker: int) -> Read:
    return read(world, broker, console(world, broker).topics())


def replicas(world: ClusterWorld, broker: int, name: str = TOPIC) -> dict[str, dict[str, str]]:
    """{replica: its row}, of partition 0"""
    found = read(world, broker, console(world, broker).topic(name)).tables["replicas"]
    return {one["REPLICA"]: one for one in found if one["PARTITION"] == "0"}


# ---- topics --------------------------------------------------------------------------------------


def test_every_broker_shows_who_votes_and_who_observes(moving: MovingWorld) -> None:
    for broker in range(1, 6):
        found = replicas(moving, broker)
        roles = {one: found[one]["ROLE"] for one in found}
        assert roles == dict.fromkeys("123", "voter") | dict.fromkeys("45", "observer")
        assert {one["LEADER"] for one in found.values()} == {str(moving.leader_of(TOPIC))}


def test_how_far_replicas_are_is_shown_by_their_leader_and_is_a_question_elsewhere(
    moving: MovingWorld,
) -> None:
    leader = moving.leader_of(TOPIC)
    far = ("IN SYNC", "CAUGHT UP", "LAG IN RECORDS", "BEHIND FOR")
    found = replicas(moving, leader)
    assert [one for one in found if found[one]["IN SYNC"] == "yes"] == ["1", "2", "3"]
    assert {one["CAUGHT UP"] for one in found.values()} == {"yes"}
    assert found[str(leader)]["LAG IN RECORDS"] == "0"
    elsewhere = replicas(moving, 4)
    assert {elsewhere[one][head] for one in elsewhere for head in far} == {"?"}


def test_an_observer_that_is_gone_is_silent_and_behind(moving: MovingWorld) -> None:
    leader = moving.leader_of(TOPIC)
    moving.hosts[4].kill()
    moving.advance(5_000)
    gone = replicas(moving, leader)["4"]
    assert (gone["ROLE"], gone["HEARD HERE"], gone["CAUGHT UP"]) == ("observer", "no", "no")
    assert int(gone["LAG IN RECORDS"]) > 0 and gone["BEHIND FOR"].endswith(" s")
    everything, one = topics(moving, leader).tables["topics"]
    assert (everything["TOPIC"], one["TOPIC"]) == ("all", TOPIC)
    assert (one["REPLICA SILENT"], one["LED HERE"], one["NOT CAUGHT UP"]) == ("1", "1", "1")
    assert (one["NO LEADER"], one["UNDER-REPLICATED"], one["UNDER MIN ISR"]) == ("0", "0", "0")


def test_a_topic_that_moves_shows_who_is_to_come_and_to_go(moving: MovingWorld) -> None:
    moving.hosts[5].kill()
    moving.advance(3_000)
    moving.balance((1, 2, 5), (4,))
    moving.advance(2_000)
    found = read(moving, 1, console(moving, 1).topic(TOPIC))
    assert "partition 0: replicas are moving" in found.texts["notes"]
    roles = {one["REPLICA"]: one["ROLE"] for one in found.tables["replicas"]}
    assert roles == dict.fromkeys("123", "voter") | dict.fromkeys("45", "observer")


def test_topics_lead_to_their_pages(world: ClusterWorld) -> None:
    found = topics(world, 2)
    assert found.tables["topics"][1]["PARTITIONS"] == "2"
    assert "/topics/t" in found.links
    found = read(world, 2, console(world, 2).topic("t"))
    where = {one["REPLICA"]: one["WHERE"] for one in found.tables["replicas"]}
    assert where == {one: DOMAINS[int(one)] for one in where}
    assert {one["PARTITION"] for one in found.tables["replicas"]} == {"0", "1"}


def test_a_partition_without_a_leader_is_told_of(world: ClusterWorld) -> None:
    placed = sorted(map(int, replicas(world, 1, "t")))
    for broker in placed[1:]:
        world.hosts[broker].kill()
    world.advance(15_000)
    asked = placed[0]
    assert {one["LEADER"] for one in replicas(world, asked, "t").values()} == {"none known"}
    (everything, _) = topics(world, asked).tables["topics"]
    assert (everything["NO LEADER"], everything["REPLICA SILENT"]) == ("2", "2")


def test_of_long_lists_those_that_are_not_well_are_shown(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "z"):
        world.create_topic(name, partitions=2)
    world.advance(2_000)
    ailing = world.broker(1).services.cluster.topics["z"].partitions[1]
    world.broker(1).replication.replicas[ailing.group].fail(OSError(5, "as on a bad disk"))
    shown = topics(world, 1)
    assert [one["TOPIC"] for one in shown.tables["topics"]] == ["all", "z", "a", "t"]
    assert "left-out" not in shown.texts
    monkeypatch.setattr("strandline.admin.console.pages.ROW_COUNT_MAX", 1)
    shown = topics(world, 1)
    assert [one["TOPIC"] for one in shown.tables["topics"]] == ["all", "z"]
    assert shown.tables["topics"][0]["PARTITIONS"] == "6"
    assert shown.texts["left-out"].startswith("1 are shown, those that are not well first")
    shown = read(world, 1, console(world, 1).topic("z"))
    assert {one["PARTITION"] for one in shown.tables["replicas"]} == {"1"}
    assert "this broker's replica has failed" in shown.texts["notes"]
    assert "left-out" in shown.texts


@pytest.mark.parametrize("name", ["", "none", "t/0", "%74", HOSTILE])
def test_a_topic_that_there_is_not_is_not_found(world: ClusterWorld, name: str) -> None:
    found = read(world, 1, console(world, 1).topic(name), status=404)
    assert found.texts["missing"] == f"no topic {name}".strip()


# ---- outages and brokers -------------------------------------------------------------------------


def test_a_region_that_is_down_is_shown_until_it_is_back(world: ClusterWorld) -> None:
    controller = controller_of(world)
    calm = index(world, controller)
    assert calm.texts["calm"] == "All zones and regions are up."
    assert "alarms" not in calm.tables and calm.title == f"Strandline, broker {controller}"
    for broker in (3, 4):
        world.hosts[broker].kill()
    world.advance(30_000)
    shown = index(world, controller)
    (alarm,) = (one for one in shown.tables["alarms"] if one["CLASS"] == "region")
    assert "west" in alarm["WHAT"] and alarm["FOR"].endswith(" s")
    (west,) = (one for one in shown.tables["zones"] if one["NAME"] == "west")
    assert (west["LEVEL"], west["STATE"], west["HEARD"]) == ("region", "down for 0 min", "0/2")
    assert (west["SILENT"], west["REPAIR"]) == ("3,4", "held until it returns")
    assert "calm" not in shown.texts
    assert "going on" in shown.title
    for broker in (3, 4):
        world.hosts[broker].start()
    world.until_started(3, 4)
    world.advance(60_000)
    over = index(world, controller_of(world))
    assert "alarms" not in over.tables and "calm" in over.texts
    assert {one["STATE"] for one in over.tables["zones"]} == {"up"}


def test_what_goes_on_with_fewer_voters_or_observers_is_shown_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configs = (("voters.shrink.enable", "true"),)
    with moving_world(monkeypatch, configs=configs) as moving:
        moving.advance(2_000)  # The controller has looked.
        lost = next(one for one in (1, 2, 3) if one != controller_of(moving))
        assert {
            one["PARTITIONS"] for one in index(moving, controller_of(moving)).tables["weakened"]
        } == {"0"}
        moving.hosts[lost].kill()
        moving.advance(BEGUN_MS * 2)
        shown = index(moving, controller_of(moving))
        weakened = {one["CLASS"]: one["PARTITIONS"] for one in shown.tables["weakened"]}
        assert weakened == {
            "fewer-voters": "1",
            "observers-vote": "0",
            "low-quorum": "0",
            "no-leader": "0",
            "tiered-lag": "0",
            "tiered-full": "0",
        }
        assert "fewer-voters" in {one["CLASS"] for one in shown.tables["alarms"]}
        roles = {
            one["REPLICA"]: one["ROLE"] for one in replicas(moving, controller_of(moving)).values()
        }
        assert roles[str(lost)] == "voter, does not vote now"
        moving.hosts[lost].start()
        moving.until_started(lost)
        moving.advance(OVER_MS * 2)
        assert "alarms" not in index(moving, controller_of(moving)).tables


def test_who_is_not_the_controller_says_who_is_and_shows_the_brokers(world: ClusterWorld) -> None:
    controller = controller_of(world)
    other = next(one for one in (1, 2) if one != controller)
    world.hosts[4].kill()
    world.advance(5_000)
    shown = index(world, other)
    said = shown.texts["controller"]
    address = world.broker(other).services.cluster.brokers[BrokerId(controller)].kafka
    assert f"broker {controller} is, with the Kafka address {address.host}:{address.port}" in said
    assert "alarms" not in shown.tables and "zones" not in shown.tables
    brokers = {one["BROKER"]: one for one in shown.tables["brokers"]}
    assert {one: brokers[one]["LABELS"] for one in brokers} == {
        str(one): f"region={region}" for one, region in DOMAINS.items()
    }
    assert [one for one in brokers if brokers[one]["HEARD HERE"] == "yes"] == ["1", "2", "3"]
    assert brokers[str(controller)]["ROLE"] == "controller"
    assert brokers[str(other)]["ROLE"] == "this one"


def test_without_a_controller_it_says_so(world: ClusterWorld) -> None:
    for broker in (2, 3):
        world.hosts[broker].kill()
    world.advance(30_000)
    for broker in (1, 4):
        shown = index(world, broker)
        assert "knows of no controller" in shown.texts["controller"]
        assert len(shown.tables["brokers"]) == 4


def test_a_broker_that_leads_the_controller_and_has_not_looked_says_so(
    world: ClusterWorld,
) -> None:
    controller = controller_of(world)
    world.broker(controller).services.balancing._findings = None
    assert "has not looked yet" in index(world, controller).texts["controller"]


# ---- what a browser is given ---------------------------------------------------------------------


def test_names_are_shown_and_never_run() -> None:
    regions = {1: "east", 2: "east", 3: HOSTILE, 4: HOSTILE}
    with joined(ClusterWorld(BROKERS, regions=regions)) as hostile:
        if controller_of(hostile) == 3:
            hostile.controller(3).transfer_leadership(BrokerId(1))
        hostile.advance(5_000)
        for broker in (3, 4):
            hostile.hosts[broker].kill()
        hostile.advance(30_000)
        found = index(hostile, controller_of(hostile))
        (alarm,) = (one for one in found.tables["alarms"] if one["CLASS"] == "region")
        assert HOSTILE in alarm["WHAT"]
        assert HOSTILE in {one["NAME"] for one in found.tables["zones"]}
        labels = {one["BROKER"]: one["LABELS"] for one in found.tables["brokers"]}
        assert labels["4"] == f"region={HOSTILE}"


def test_a_browser_may_run_and_load_nothing_and_asks_again(world: ClusterWorld) -> None:
    asked = console(world, 1)
    for page in (asked.index(), asked.topics(), asked.topic("t")):
        answer, text = answered(world, 1, page)
        headers = dict(answer.headers)
        assert headers["Refresh"] == str(REFRESH_S)
        (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        first, second, *others = headers["Content-Security-Policy"].split("; ")
        assert (first, second) == ("default-src 'none'", f"style-src 'sha256-{digest}'")
        assert all(one.endswith(" 'none'") for one in others)
        assert "style=" not in text and "<script" not in text


def test_before_it_serves_clients_one_line_says_so(world: ClusterWorld) -> None:
    early = console(world, 1, is_ready=False)
    for page in (early.index(), early.topics(), early.topic("t")):
        answer = world.do(1, page)
        assert (answer.status, answer.content_type) == (503, PLAIN)
        (line,) = b"".join(answer.body).splitlines()
        assert line.startswith(b"This broker does not serve clients yet")
        assert dict(answer.headers) == {"Refresh": str(REFRESH_S)}


def test_people_and_programs_do_not_get_each_others_pages(world: ClusterWorld) -> None:
    last = LastPage(world.broker(1).services.clock)
    pages = Console(world.broker(1), last, is_ready=lambda: True)
    told = Api(world.broker(1), last, is_ready=lambda: True)
    first = world.do(1, pages.topics())
    assert world.do(1, pages.topics()) is first
    assert world.do(1, told.topics()).content_type != HTML
    assert world.do(1, pages.topic("t")).body != world.do(1, pages.topics()).body


def test_long_walks_give_way(world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = 4
    world.create_topic("long", partitions=rounds * STEP)
    world.advance(2_000)
    rest, looked = Pace.rest, []

    async def counted(pace: Pace) -> None:
        looked.append(pace)
        await rest(pace)

    monkeypatch.setattr(Pace, "rest", counted)
    world.do(1, console(world, 1).topics())
    assert len(looked) > rounds and len(set(map(id, looked))) == 1
    looked.clear()
    world.do(1, console(world, 1).topic("long"))
    assert len(looked) > 2 * rounds


def test_a_long_page_comes_in_parts(world: ClusterWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(world.do(1, console(world, 1).topics()).body)
    monkeypatch.setattr("strandline.admin.console.rendering.PART_BYTES", 1)
    monkeypatch.setattr("strandline.admin.console.rendering.PIECES", 1)
    answer = world.do(1, console(world, 1).topics())
    assert len(answer.body) > 3
    assert len(b"".join(answer.body)) == len(whole)


def test_marks_of_direction_and_control_characters_are_shown_as_escapes() -> None:
    with joined(ClusterWorld(BROKERS, regions={1: "east", 2: "east", 3: MARKS, 4: MARKS})) as made:
        made.advance(5_000)
        for name in (MARKS, f"</title>{MARKS}"):
            _, text = answered(made, 1, console(made, 1).topic(name), status=404)
            expect_no_marks(text)
            assert "onerror=alert(1)&gt;\\u202egnp.exe\\u2066\\x9b\\x1b[2J" in text
        answer, text = answered(made, 1, console(made, 1).index())
        expect_no_marks(text)
        assert "\\u202egnp.exe" in text
        policy = dict(answer.headers)["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src" not in policy


def expect_no_marks(text: str) -> None:
    assert not set("\u202e\u2066\x9b\x1b") & set(text)
    assert "img" not in Read(text).tags

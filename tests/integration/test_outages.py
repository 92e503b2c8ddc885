"""A whole region of real brokers is killed under load: nothing is copied until somebody says so,
somebody outside is told, and the page about it does what it says.

Source: docs/decisions/0018-outages.md; docs/operating/outages.md."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, try_line, type_in
from tests.integration.placed_load import PARTITIONS, TOPIC, Load, balance, expect_read

from strandline.cli.exit_codes import UNHEALTHY

pytestmark = pytest.mark.integration

PAGE = "outages.md"
LOST_AFTER_MS = 4_000
ANY_THREE = '{"rules":[{"count":3}]}'


@pytest.fixture
def told() -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A URL, and what is posted there."""
    posted: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/", posted
    server.shutdown()
    server.server_close()


def replicas(admin: AdminClient) -> list[tuple[int, ...]]:
    return [tuple(sorted(one.replicas)) for one in partitions_of(admin, TOPIC).values()]


def west(cluster: DevCluster) -> dict[str, object]:
    shown = cluster.run("zone", "status", "--json", "--bootstrap", cluster.bootstrap).stdout
    (found,) = [one for one in json.loads(shown)["zones"] if one["name"] == "west"]
    assert isinstance(found, dict)
    return found


def set_keys(admin: AdminClient) -> set[str]:
    """The keys that were set for all brokers."""
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    entries = admin.describe_configs([resource])[resource].result(30).values()
    return {one.name for one in entries if not one.is_default}


def marks(cluster: DevCluster) -> tuple[object, object]:
    found = west(cluster)
    return found["low_percent"], found["high_percent"]


def silence_west(cluster: DevCluster) -> None:
    """Kill its brokers at once, and wait for much longer than it takes to be lost."""
    cluster.dev("region", "kill", "west")

    def down_ms() -> int:
        value = west(cluster)["down_ms"]
        return value if isinstance(value, int) else 0

    wait_until(lambda: down_ms() > 3 * LOST_AFTER_MS, what="the outage", timeout_s=90)


def test_a_region_is_killed_under_load_and_the_page_says_what_to_do(
    five: DevCluster, told: tuple[str, list[dict[str, object]]]
) -> None:
    url, posted = told
    where = ("--bootstrap", five.bootstrap)
    settings = (f"broker.lost.after.ms={LOST_AFTER_MS}", f"alarm.webhook.url={url}")
    for one in settings:
        five.run("cluster", "alter", "-c", one, *where)
    create = (
        "topic",
        "create",
        TOPIC,
        "-p",
        str(PARTITIONS),
        "-c",
        f"placement.policy={ANY_THREE}",
    )
    five.run(*create, *where)
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    brokers = west(five)["brokers"]
    assert isinstance(brokers, list) and len(brokers) == 2
    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        before = replicas(admin)
        silence_west(five)
        assert replicas(admin) == before and not balance(five)["moves"]
        (line,) = commands(PAGE, "What to look at first")
        page = try_line(five, line)
        assert page.returncode == UNHEALTHY
        assert "region west (brokers " in page.stdout and "replacement of brokers" in page.stdout
        shown = type_in(five, commands(PAGE, "What to look at first", 2))
        assert "region: region west is down since" in shown
        assert "or you run `strandline zone release west`" in shown
        five.dev("region", "start", "west")  # Who comes back much later than the others is lost.
        wait_until(lambda: west(five)["down"] is False, what="the region")
        type_in(five, commands(PAGE, "It will come back"))
        assert west(five)["ruling"] == "hold" and replicas(admin) == before
        pause, resume = commands(PAGE, "It will come back", 1)
        assert type_in(five, [pause]).startswith("paused: ")
        wait_until(lambda: not balance(five)["enabled"], what="a look of the balancer")
        type_in(five, [resume])
        wait_until(lambda: bool(balance(five)["enabled"]), what="the next one")
        # One of the two may be told of before the other is silent, too; and what goes on is posted
        # again where the controller changes.
        kinds = dict.fromkeys(
            (one["class"], one["state"]) for one in posted if one["class"] != "broker"
        )
        assert list(kinds) == [
            ("region", "begun"),
            ("region", "over"),
        ]
        type_in(five, commands(PAGE, "It will take long"))
        assert west(five)["ruling"] is None
        type_in(five, commands(PAGE, "It will take long", 1))

        silence_west(five)
        assert replicas(admin) == before
        type_in(five, commands(PAGE, "It will not come back"))
        wait_until(
            lambda: not {one for each in replicas(admin) for one in each} & set(brokers),
            what="replicas elsewhere",
            timeout_s=90,
        )
        five.dev("region", "start", "west")
        wait_until(lambda: west(five)["ruling"] is None, what="the end of it")
        type_in(five, commands(PAGE, "Set the alarm and the marks"))
        wait_until(lambda: marks(five) == (34, 60), what="the marks of all regions")
        type_in(five, commands(PAGE, "Set the alarm and the marks", 1))
        assert set_keys(admin) >= {"balancer.best.effort.enable", "outage.hold.max.ms"}
        count = load.count
        wait_until(lambda: load.count > count + 500, what="more load")
    finally:
        load.stop()
    expect_read(five, load.written)


HOLD_S = 60
OTHERS_S = 15


def rule(cluster: DevCluster, ruling: str, seconds: int, *options: str) -> None:
    """Say it for a while; the answer is that it holds, and until when."""
    told = json.loads(
        cluster.run(
            "zone", ruling, "west", "--for", f"{seconds}s", "--json", *options,
            "--bootstrap", cluster.bootstrap,
        ).stdout
    )  # fmt: skip
    assert told["ruling"] is not None and told["until_ms"] is not None


def said_of_west(cluster: DevCluster) -> tuple[object, object]:
    """(what was said of it, whether it is held)"""
    found = west(cluster)
    return found["ruling"], found["held"]


def repair_shown(cluster: DevCluster) -> str:
    """The line of `zone status` about the west."""
    shown = cluster.run("zone", "status", "--bootstrap", cluster.bootstrap).stdout
    (line,) = [one for one in shown.splitlines() if one.startswith("west ")]
    return line


def lasted_ms(cluster: DevCluster) -> int:
    """For how long it has been told that something is away."""
    shown = cluster.run("zone", "status", "--json", "--bootstrap", cluster.bootstrap).stdout
    return max((one["lasted_ms"] for one in json.loads(shown)["happenings"]), default=0)


def test_what_was_said_for_a_while_is_over_by_itself_and_all_is_as_before(five: DevCluster) -> None:
    where = ("--bootstrap", five.bootstrap)
    five.run("cluster", "alter", "-c", f"broker.lost.after.ms={LOST_AFTER_MS}", *where)
    five.run(
        "topic", "create", TOPIC, "-p", str(PARTITIONS),
        "-c", f"placement.policy={ANY_THREE}", *where,
    )  # fmt: skip
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    before = replicas(admin)
    first, second = sorted(west(five)["brokers"])  # type: ignore[call-overload]

    # A hold: a single broker is not replaced, until it is over.
    rule(five, "hold", HOLD_S)
    assert "held by hand until " in repair_shown(five)
    five.kill(first)
    wait_until(lambda: lasted_ms(five) > 3 * LOST_AFTER_MS, what="a loss", timeout_s=HOLD_S)
    placed = replicas(admin)
    assert west(five)["ruling"] == "hold" and placed == before
    wait_until(lambda: west(five)["ruling"] is None, what="the hold's end", timeout_s=90)
    assert repair_shown(five).split()[-3:-1] == ["as", "usual"]
    wait_until(
        lambda: first not in {one for each in replicas(admin) for one in each},
        what="replicas elsewhere",
        timeout_s=90,
    )

    # The region is down, and held; what is said for a while takes the place of that.
    five.kill(second)
    wait_until(lambda: west(five)["held"] is True, what="the outage", timeout_s=90)
    assert west(five)["waiting"] == sum(second in each for each in replicas(admin)) > 0
    type_in(five, commands(PAGE, "It will take long"))
    wait_until(
        lambda: not {one for each in replicas(admin) for one in each} & {first, second},
        what="replicas elsewhere",
        timeout_s=90,
    )
    wait_until(lambda: west(five)["waiting"] == 0, what="the end of waiting")
    for ruling, told, options in (("release", "release", ()), ("declare-lost", "lost", ("--yes",))):
        rule(five, ruling, OTHERS_S, *options)
        wait_until(
            lambda t=told: said_of_west(five) == (t, False),  # type: ignore[misc]
            what=ruling,
        )
        wait_until(
            lambda: said_of_west(five) == (None, True),
            what=f"the end of {ruling}",
            timeout_s=90,
        )
        assert "held until it returns" in repair_shown(five)
        assert west(five)["down"] is True

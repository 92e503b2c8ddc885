"""Two of three replicas are gone, disks and all: a person declares them lost, and writing goes on.

Source: docs/decisions/0027-declared-losses.md; docs/operating/outages.md."""

import json
import re
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, shown, try_line, type_in
from tests.integration.ports import free_ports
from tests.integration.test_kill import Writer, read_back

from strandline.cli.exit_codes import UNHEALTHY

pytestmark = pytest.mark.integration

TOPIC, HOME, LEFT, LOST = "orders", "3,4,5", 3, (4, 5)
TIMEOUT_S = 60
PAGE, TITLE = "outages.md", "Too few replicas are left"
CONTROLLER_LOST = "Most of the controller's voters are lost"


def tell(cluster: DevCluster, *arguments: str) -> Any:
    done = cluster.run(*arguments, "-b", cluster.bootstrap, "--json")
    return json.loads(done.stdout)


def leader(cluster: DevCluster) -> int:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    return partitions_of(admin, TOPIC)[0].leader


def in_sync(cluster: DevCluster) -> set[int]:
    (topic,) = tell(cluster, "topic", "describe", TOPIC)["topics"]
    return set(topic["partitions"][0]["in_sync"])


def give_new_address(cluster: DevCluster, broker: int) -> None:
    """From its next start on; the others are told by nobody but itself."""
    file = cluster.directory / "cluster.json"
    plan = json.loads(file.read_text())
    (one,) = [each for each in plan["brokers"] if each["id"] == broker]
    config = cluster.directory / f"broker-{broker}/config.toml"
    text = config.read_text()
    for key, port in zip(("kafka_port", "rpc_port"), free_ports(2), strict=True):
        text = text.replace(str(one[key]), str(port))
        one[key] = port
    config.write_text(text)
    file.write_text(json.dumps(plan))


def test_writing_goes_on_and_who_comes_back_takes_nothing_away(five: DevCluster) -> None:
    where = ("-b", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", "1", "-r", "3", "-c", "min.insync.replicas=1", *where)
    five.run("partition", "move", TOPIC, "0", "--to", HOME, "--force", *where)
    wait_until(lambda: in_sync(five) == {3, 4, 5}, what="the move", timeout_s=TIMEOUT_S)
    writer = Writer(five, TOPIC, 1)
    writer.write(200)
    writer.flush()
    for broker in LOST:
        five.kill(broker)
        (five.directory / f"broker-{broker}").rename(five.directory / f"away-{broker}")

    # What those who answer prove, and who would save it all.
    def survivors_told() -> str:
        return type_in(five, commands(PAGE, TITLE))

    saved = "nothing is at risk once 1 of brokers 4,5 returns with its disks intact"
    wait_until(lambda: saved in survivors_told(), what="the table", timeout_s=TIMEOUT_S)
    assert "and above: AT RISK: on no replica that answers" in survivors_told()

    # Who writes or reads on the command line is told where to look.
    wait_until(lambda: leader(five) < 0, what="no leader", timeout_s=TIMEOUT_S)
    for command in ("produce", "consume --exit-at-end"):
        refused = try_line(five, f"strandline {command} {TOPIC} --timeout 2", typed="one\n")
        assert refused.returncode == 1
        assert refused.stderr.endswith(f"replica status --topics {TOPIC}\n"), refused.stderr

    # While they may be heard of, and while one lives who would do, nothing is given up; nor where
    # another name is typed.
    (line,) = commands(PAGE, TITLE, 1)
    assert line == f"strandline partition declare-lost {TOPIC} 0"

    # The same for many at once; a dry run declares nothing.
    def foretold() -> bool:
        told = type_in(five, commands(PAGE, TITLE, 2))
        return len(re.findall(rf"^{TOPIC}-0 +4,5 ", told, re.MULTILINE)) == 2

    wait_until(foretold, what="the table of all", timeout_s=TIMEOUT_S)

    def declared() -> bool:
        assert try_line(five, line, typed="order\n").returncode
        done = try_line(five, line, typed=f"{TOPIC}\n")
        if done.returncode:
            assert re.search(r"not lost|led|heard|reachable", done.stderr), done.stderr
        return done.returncode == 0

    wait_until(declared, what="the declaration", timeout_s=TIMEOUT_S)
    wait_until(lambda: leader(five) == LEFT, what="a leader")
    before = dict(writer.acknowledged)
    writer.write(200)
    writer.flush()
    after = set(writer.acknowledged) - set(before)
    assert len(after) == 200 and writer.failed == []
    (topic,) = tell(five, "topic", "describe", TOPIC)["topics"]
    (loss,) = topic["declared_lost"]
    assert (loss["lost"], loss["leader"]) == ([4, 5], LEFT)
    assert "declared lost on" in five.run("topic", "describe", TOPIC, *where).stdout
    # One comes back with all that it had, in another machine; the other never does.
    (five.directory / "away-5").rename(five.directory / "broker-5")
    give_new_address(five, 5)
    five.start(5)
    wait_until(lambda: 5 in in_sync(five), what="its copy", timeout_s=TIMEOUT_S)
    assert leader(five) in (LEFT, 5)
    writer.write(100)
    writer.flush()
    values = read_back(five, TOPIC, 1)
    later = {one: at for one, at in writer.acknowledged.items() if one not in before}
    assert {one: values.get(one) for one in later} == later
    lost = set(before) - set(values)
    assert all(before[one][1] >= loss["at_risk_from"] for one in lost)
    survivors = tell(five, "partition", "survivors", TOPIC, "0")
    ends = {one["broker"]: one["end"] for one in survivors["replicas"] if one["end"] is not None}
    assert survivors["standing"] == "led" and set(ends) == {3, 5}
    expect_the_page_to_help_without_a_controller(five)


def expect_the_page_to_help_without_a_controller(cluster: DevCluster) -> None:
    """Brokers 3 and 5 are left of five that vote in the controller, and hold the partition."""
    for broker in (1, 2):
        cluster.kill(broker)
    (said,) = shown(PAGE, CONTROLLER_LOST)

    def is_refused() -> bool:
        """Brokers report a killed one as silent only after the election time-out."""
        refused = try_line(cluster, "strandline zone status --timeout 5")
        return (refused.returncode, refused.stderr) == (1, f"{said}\n")

    wait_until(is_refused, what="the refusal of the page", timeout_s=TIMEOUT_S)
    status = try_line(cluster, "strandline cluster status")
    assert status.returncode == UNHEALTHY and "NOT KNOWN" in status.stdout
    assert said.removeprefix("error: ") in status.stdout
    wait_until(lambda: leader(cluster) in (3, 5), what="a leader", timeout_s=TIMEOUT_S)
    told = type_in(cluster, commands(PAGE, CONTROLLER_LOST, 1))
    assert re.search(rf"^{TOPIC} +1 +3 +0 +1$", told, re.MULTILINE), told
    assert re.search(r"^ +0 +[35]@", told, re.MULTILINE), told
    assert "the replicas that answer report a leader" in told
    cluster.start(1)
    assert type_in(cluster, ["strandline zone status"])

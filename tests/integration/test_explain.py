"""A live cluster explains itself: the commands of docs/operating/placement.md on 2 + 2 + 1 brokers
in three regions, with brokers that are killed and a policy that no longer holds."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[2] / "docs/operating/placement.md").read_text()
SECTION = PAGE.partition("## Ask why, and what still survives\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)[0].splitlines()
SHOWN = re.findall(r"```text\n(.*?)```", SECTION, re.DOTALL)[0].splitlines()
POLICY = re.findall(r"### A region, or any two brokers\n.*?```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
PRICES = re.findall(r"`(\{currency: .*?\})`", PAGE)[0]
CLOCK_MS = 2
"""Brokers measure in whole milliseconds: the way, and for how long the peer kept the answer."""


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """2 + 2 + 1, with the topic of the page, and one without a policy."""
    cluster = start_cluster(
        tmp_path_factory.mktemp("five"),
        regions="east=2,west=2,south=1",
        options=("--rtt", "east-west=20,east-south=40,west-south=50"),
    )
    (cluster.directory / "policy.yaml").write_text(POLICY)
    (cluster.directory / "prices.yaml").write_text(PRICES)
    bootstrap = ("-b", cluster.bootstrap)
    policy = str(cluster.directory / "policy.yaml")
    cluster.run("topic", "create", "payments", "-p", "12", "--policy", policy, *bootstrap)
    cluster.run("topic", "create", "plain", "-p", "2", "-r", "3", *bootstrap)
    yield cluster
    stop_cluster(cluster)


def tell(cluster: DevCluster, *arguments: str) -> Any:
    """What a command answers to programs."""
    done = cluster.run(*arguments, "-b", cluster.bootstrap, "--json")
    return json.loads(done.stdout)


def without_times(line: str) -> str:
    """What is shown, whatever was measured."""
    return re.sub(r"\d+ ms( to \d+ ms)?", "so long", line)


def test_the_commands_of_the_page_run_on_a_live_cluster(five: DevCluster) -> None:
    assert len(COMMANDS) == 4
    for command in COMMANDS:
        _, *words = shlex.split(command)
        arguments = [
            str(five.directory / word) if word.endswith(".yaml") else word for word in words
        ]
        done = five.run(*arguments, "-b", five.bootstrap)
        assert done.stdout and not done.stderr, command
    by_prices = five.run(
        "topic", "explain", "payments", "--prices", str(five.directory / "prices.yaml"),
        "-b", five.bootstrap,
    )  # fmt: skip
    assert re.search(r"^replicating a GB costs 0\.0[45]\d* EUR$", by_prices.stdout, re.MULTILINE)


def test_latencies_come_from_round_trips_that_brokers_measured(five: DevCluster) -> None:
    def trips() -> dict[tuple[str, str], int]:
        told = tell(five, "cluster", "explain")
        return {tuple(one["between"]): one["ms"] for one in told["round_trips"]}

    pairs = {("east", "south"), ("east", "west"), ("south", "west")}
    wait_until(lambda: pairs <= set(trips()), what="every way to be measured")
    measured = trips()
    assert measured["east", "west"] >= 20 - CLOCK_MS
    assert measured["east", "south"] >= 40 - CLOCK_MS
    assert measured["south", "west"] >= 50 - CLOCK_MS

    def latencies() -> dict[int, tuple[int, set[int]]]:
        told = tell(five, "topic", "explain", "payments")["details"]
        return {
            one["leader"]: (one["commit_ms"], set(one["waits_for"])) for one in told["latencies"]
        }

    waits: dict[int, tuple[int, set[int]]] = {}

    def are_as_far_as_the_links() -> bool:
        """Of five voters two others are waited for: in the east, its own and one of the west; the
        south is nearest to the east."""
        waits.update(latencies())
        if set(waits) != {1, 2, 3, 4, 5}:
            return False
        return 2 in waits[1][1] and bool(waits[1][1] & {3, 4}) and waits[5][1] == {1, 2}

    # A busy machine makes some of the first round trips long.
    wait_until(are_as_far_as_the_links, what="the ways to be as long as their links", timeout_s=90)
    assert waits[1][0] >= 20 - CLOCK_MS
    assert waits[5][0] >= 40 - CLOCK_MS


def test_a_topic_without_a_policy_is_explained_by_the_default_spread(five: DevCluster) -> None:
    told = tell(five, "topic", "explain", "plain")
    assert told["policy_key"] == "" and told["mended"] is None
    assert [one["faults"] for one in told["explanation"]["alike"]] == [[]] * len(
        told["explanation"]["alike"]
    )
    assert told["explanation"]["writes"] == [{"region": 1}]


def test_who_acts_after_a_loss_is_told_when_a_topic_is_made_and_later(five: DevCluster) -> None:
    made = tell(five, "topic", "create", "two", "-r", "2", "-p", "1")["topics"][0]["losses"]
    assert made == tell(five, "topic", "explain", "two")["losses"]
    lost = {one["loss"]: one for one in made if not one["is_cut"]}
    assert (lost["1 region"]["course"], lost["1 region"]["acts_alone"]) == (
        "let-voters-leave",
        False,
    )
    assert (lost["2 brokers"]["course"], lost["2 brokers"]["keeps_data"]) == ("gone", False)
    # What it says to do makes it act by itself.
    *_, command = lost["1 region"]["text"].partition("strandline ")
    five.run(*command.split(), "-b", five.bootstrap)
    later = tell(five, "topic", "explain", "two")["losses"]
    lost = {one["loss"]: one for one in later if not one["is_cut"]}
    assert (lost["1 broker"]["course"], lost["1 broker"]["acts_alone"]) == ("arbitration", True)
    text = five.run("topic", "explain", "payments", "-b", five.bootstrap).stdout
    assert re.search(r"^1 region +by itself +kept +3 of 5 voters are left", text, re.MULTILINE)
    text = five.run("topic", "create", "one", "-r", "1", "-b", five.bootstrap).stdout
    assert re.search(r"^1 broker +operator +lost +no voter is left", text, re.MULTILINE)
    five.run("topic", "delete", "one", "two", "-b", five.bootstrap)


def test_a_policy_that_no_longer_holds_says_what_does_not(five: DevCluster) -> None:
    def relabel(region: str) -> None:
        five.run("broker", "label", "5", f"region={region}", "--force", "-b", five.bootstrap)

    def has_faults() -> bool:
        explanation = tell(five, "topic", "explain", "payments")["explanation"]
        return any(one["faults"] for one in explanation["alike"])

    assert not has_faults()
    alter = ("cluster", "alter", "-c", "min.insync.replicas=4", "-b", five.bootstrap)
    refused = five.run(*alter, check=False)
    assert refused.returncode == 1 and "placement.policy of topic payments: " in refused.stderr
    relabel("west")
    wait_until(has_faults, what="the fault to be told")
    told = five.run("topic", "explain", "payments", "-b", five.bootstrap).stdout
    assert "0-11        1,2,3,4,5  3 of 5         -     no: survive 1 region does not hold" in told
    assert "no placement satisfies the policy: cannot place " in told
    relabel("south")
    wait_until(lambda: not has_faults(), what="the policy to hold again")


def test_an_outage_is_explained_while_it_lasts(five: DevCluster) -> None:
    def down() -> list[int]:
        told = tell(five, "cluster", "explain")
        return [one["id"] for one in told["brokers"] if one["state"] == "down"]

    def is_led_elsewhere() -> bool:
        (topic,) = tell(five, "topic", "describe", "payments")["topics"]
        return all(one["leader"] in (1, 2, 3, 4) for one in topic["partitions"])

    five.kill(5)
    wait_until(lambda: down() == [5], what="broker 5 to be missed")
    wait_until(is_led_elsewhere, what="its partitions to be led by others")
    told = five.run("topic", "explain", "payments", "-b", five.bootstrap).stdout.splitlines()
    misled = [line for line in told if "is led by broker" in line]
    assert misled and all("not 5 (down): broker 5 is down" in line for line in misled)
    told = [line for line in told if line not in misled]
    assert [without_times(line) for line in told[: len(SHOWN)]] == [
        without_times(line) for line in SHOWN
    ]
    losses = tell(five, "cluster", "explain")["losses"]
    assert {one["domain"]: one["stops"] for one in losses if one["level"] == "region"} == {
        "east": 14,
        "west": 14,
    }
    # A majority of the controller and of the topic is gone: one broker still tells.
    for broker in (2, 3, 4):
        five.kill(broker)
    wait_until(lambda: down() == [2, 3, 4, 5], what="the others to be missed")
    told = five.run("topic", "explain", "payments", "-b", five.bootstrap).stdout.splitlines()
    assert (
        "  acks=all is refused by partitions 0-11 until enough replicas are in sync again"
    ) in told
    left = tell(five, "partition", "survivors", "payments", "0")
    assert (left["standing"], left["best"], left["missing"]) == ("short", 1, [2, 3, 4, 5])
    assert left["wanted_back"] == 2
    assert left["at_risk_from"] <= left["on_nobody_from"] == left["replicas"][0]["end"]
    assert [one["state"] for one in left["replicas"]] == ["answers"] + ["silent"] * 4
    five.start_all()
    wait_until(lambda: down() == [], what="all to be back")
    explanation = tell(five, "topic", "explain", "payments")["explanation"]
    assert explanation["writes_now"] == [{"region": 1}, {"broker": 2}]
    told = five.run("partition", "survivors", "payments", "0", "-b", five.bootstrap).stdout
    assert "the replicas that answer report a leader: nothing is lost" in told

"""A real broker is emptied while librdkafka produces, as the page about it says.

Source: docs/decisions/0011-the-life-of-a-broker.md; docs/operating/brokers.md."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.pages import commands, type_in
from tests.integration.placed_load import PARTITIONS, TOPIC, Load, expect_read, place

pytestmark = pytest.mark.integration

PAGE = "brokers.md"


def leaving(cluster: DevCluster) -> dict[int, dict[str, object]]:
    told = cluster.run("broker", "status", "--json", "--bootstrap", cluster.bootstrap)
    return {one["broker"]: one for one in json.loads(told.stdout)["leaving"]}


def test_a_broker_is_emptied_under_load_as_the_page_says_and_no_write_fails(
    five: DevCluster, tmp_path: Path
) -> None:
    title = "Take a broker away for good"
    where = ("--bootstrap", five.bootstrap)
    five.dev("broker", "add", "--region", "west")  # All five vote; it takes the vote of broker 4.
    place(five, tmp_path / "policy.yaml")
    five.run("topic", "create", "plain", "-p", "4", *where)
    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        refused = five.run("broker", "decommission", "5", *where, check=False)
        assert refused.returncode == 1 and "placement.policy of topic" in refused.stderr
        assert "\n  this would be possible: " in refused.stderr
        assert "broker 4" in type_in(five, commands(PAGE, title, 0))
        wait_until(lambda: bool(leaving(five)[4]["empty"]), what="an empty broker", timeout_s=90)
        assert "you may stop it" in five.run("broker", "status", *where).stdout
        five.kill(4)
        before = load.count
        wait_until(lambda: load.count > before + 500, what="more load")
        five.start(4)
        type_in(five, commands(PAGE, title, 2))
        assert leaving(five) == {}
    finally:
        load.stop()
    expect_read(five, load.written)


def test_a_broker_is_stopped_for_a_while_as_the_page_says_and_no_write_fails(
    five: DevCluster,
) -> None:
    title = "Stop a broker for a while"
    where = ("--bootstrap", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "3", *where)
    five.run("cluster", "alter", "-c", "leader.imbalance.check.interval.seconds=1", *where)
    load = Load(five.bootstrap)

    def led() -> int:
        told = json.loads(five.run("broker", "status", "--json", *where).stdout)
        (one,) = told["maintenance"]
        assert one["broker"] == 2
        return int(one["leads"])

    try:
        wait_until(lambda: load.count > 500, what="the load")
        type_in(five, commands(PAGE, title, 0))
        wait_until(lambda: led() == 0, what="other leaders", timeout_s=60)
        refused = [
            five.run("broker", "maintain", str(one), *where, check=False) for one in (1, 3, 4, 5)
        ]
        texts = [one.stderr for one in refused if one.returncode]
        assert texts and all("could not be written" in one for one in texts)
        five.kill(2)
        before = load.count
        wait_until(lambda: load.count > before + 500, what="more load")
        five.start(2)
        told = json.loads(five.run("broker", "status", "--json", *where).stdout)
        others = [str(one["broker"]) for one in told["maintenance"] if one["broker"] != 2]
        for one in others:
            five.run("broker", "resume", one, *where)
        assert led() == 0
        type_in(five, commands(PAGE, title, 1))
    finally:
        load.stop()
    expect_read(five, load.written)


def test_what_is_tried_and_explained_knows_who_leaves_and_who_is_spared(
    five: DevCluster, tmp_path: Path
) -> None:
    where = ("--bootstrap", five.bootstrap)
    file = tmp_path / "policy.yaml"

    def tried(policy: str, name: str) -> set[int] | None:
        """The brokers that it is tried on, which are those of the topic then; None: refused."""
        file.write_text(policy)
        told = five.run("policy", "test", str(file), "--json", *where, check=False)
        made = five.run("topic", "create", name, "--policy", str(file), *where, check=False)
        assert told.returncode == made.returncode
        if told.returncode:
            assert told.stderr == made.stderr.replace(f"topic {name}: ", f"{file}: ")
            return None
        placed = json.loads(told.stdout)["partitions"]
        return {broker for one in placed for broker in one["voters"]}

    def states() -> list[str]:
        told = json.loads(five.run("cluster", "explain", "--json", *where).stdout)
        return [one["state"] for one in told["brokers"]]

    in_west = "rules: [{count: %d, where: [{label: region, op: in, values: [west]}]}]"
    assert tried(in_west % 2, "both") == {3, 4}
    five.run("topic", "delete", "both", *where)
    five.run("broker", "decommission", "4", *where)
    five.run("broker", "maintain", "1", *where)
    assert states() == ["in maintenance", "active", "active", "being decommissioned", "active"]
    assert tried(in_west % 1, "one") == {3}
    assert tried(in_west % 2, "two") is None
    assert tried("survive: region", "three") == {2, 3, 5}


DOMAINS = {"blue": (1, 2), "green": (3, 4)}


def test_a_whole_upgrade_domain_is_stopped_for_a_while_and_no_write_fails(
    five: DevCluster,
) -> None:
    where = ("--bootstrap", five.bootstrap)
    for domain, brokers in DOMAINS.items():
        for one in brokers:
            five.kill(one)
            file = Path(str(five.brokers[one]["config_file"]))
            labels = f'[broker.labels]\nupgrade_domain = "{domain}"'
            file.write_text(file.read_text().replace("[broker.labels]", labels))
            five.start(one)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "5", *where)
    five.run("topic", "create", "pair", "-p", "2", "-r", "2", *where)
    load = Load(five.bootstrap)

    def maintain(domain: str) -> subprocess.CompletedProcess[str]:
        return five.run("broker", "maintain", "--domain", domain, *where, check=False)

    def spared() -> dict[int, int]:
        """{broker in maintenance: how many partitions it leads}"""
        told = json.loads(five.run("broker", "status", "--json", *where).stdout)
        return {int(one["broker"]): int(one["leads"]) for one in told["maintenance"]}

    try:
        wait_until(lambda: load.count > 500, what="the load")
        refused = [one for one in (maintain("blue"), maintain("green")) if one.returncode]
        assert refused and all("pair-" in one.stderr for one in refused)
        assert all("needs 2 of brokers" in one.stderr for one in refused)
        assert all(len(one.stderr.splitlines()) == 1 for one in refused)
        for one in spared():
            five.run("broker", "resume", str(one), *where)
        five.run("topic", "delete", "pair", *where)
        assert spared() == {}
        wait_until(lambda: not maintain("blue").returncode, what="all in sync")
        wait_until(lambda: spared() == {1: 0, 2: 0}, what="other leaders", timeout_s=60)
        second = maintain("green")
        assert second.returncode == 1
        assert (
            "needs 3 of brokers 1, 2, 3, 4, 5; in maintenance: 1, 2; so it is with 6"
            in second.stderr
        )
        assert spared() == {1: 0, 2: 0}  # All of a domain or none.
        planned = json.loads(five.run("cluster", "upgrade", "next", "--json", *where).stdout)
        assert [one["name"] for one in planned["now"]] == ["domain blue"]  # As maintenance says.
        (why,) = [one["why"] for one in planned["later"] if one["name"] == "domain green"]
        assert why.endswith("in maintenance: 1, 2")
        for one in DOMAINS["blue"]:
            five.kill(one)
        before = load.count
        wait_until(lambda: load.count > before + 500, what="more load")
        for one in DOMAINS["blue"]:
            five.start(one)
        five.run("broker", "resume", "--domain", "blue", *where)
        assert spared() == {}
        wait_until(lambda: not maintain("green").returncode, what="all in sync", timeout_s=60)
    finally:
        load.stop()
    expect_read(five, load.written)


def test_all_brokers_are_restarted_as_the_page_says_and_no_write_fails(five: DevCluster) -> None:
    title = "Restart all of them"
    where = ("--bootstrap", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "-r", "3", *where)
    five.run("topic", "create", "alone", "-p", "1", "-r", "1", *where)
    told = type_in(five, commands(PAGE, title, 0) + commands(PAGE, title, 1))
    assert "cannot go down: alone-0 needs 1 of brokers" in told and "restart now: broker" in told
    mistaken = five.run("cluster", "upgrade", "next", "--done", "all", *where, check=False)
    assert mistaken.returncode == 1 and "broker 1" in mistaken.stderr
    five.run("topic", "delete", "alone", *where)

    def now(done: list[str]) -> dict[str, list[dict[str, object]]]:
        options = [text for name in done for text in ("--done", name)]
        found = five.run("cluster", "upgrade", "next", *options, "--json", *where)
        return json.loads(found.stdout)  # type: ignore[no-any-return]

    done: list[str] = []

    def may_go() -> bool:
        return bool(now(done)["now"])

    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        while len(done) < len(five.brokers):
            wait_until(may_go, what="who may go", timeout_s=60)
            step = now(done)["now"]
            for one in step:
                five.kill(int(str(one["name"]).removeprefix("broker ")))
            waiting = now(done)["later"]
            assert all(one["why"] for one in waiting)
            before = load.count
            wait_until(lambda: load.count > before + 200, what="more load")  # noqa: B023
            five.start_all()
            done += [str(one["name"]) for one in step]
    finally:
        load.stop()
    assert now(done) == {"now": [], "later": []}
    expect_read(five, load.written)

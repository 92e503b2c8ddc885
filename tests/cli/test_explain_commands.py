"""`strandline topic explain`, `cluster explain` and `policy test` on a cluster."""

import json
from pathlib import Path

import pytest
from tests.cli.command_line import Run, run
from tests.cli.explain_world import (
    DEFAULT,
    FROM_CLUSTER,
    FROM_TOPIC,
    REGIONS,
    TWO_LOSSES,
    Lines,
    World,
    cells,
    told,
    world,
)
from tests.client.fake_cluster import FakeCluster

from strandline.protocol.messages.describe_leadership import (
    LeaderWait,
)
from strandline.protocol.messages.describe_writers import (
    WriterRegion,
    WrittenPartition,
)

__all__ = ["run", "told", "world"]  # The fixtures.


def test_a_topic_that_is_as_its_policy_wants(world: World, told: Lines) -> None:
    lines = told("topic", "explain", "t")
    assert lines[:5] == [
        "topic t: 2 partitions of 5 replicas, min.insync.replicas=1",
        f"policy: {TWO_LOSSES} (placement.policy of the topic)",
        "as placed, writes continue after the loss of 1 region, or 2 brokers",
        "as placed, no acknowledged write is lost with the loss of 1 region, or 2 brokers",
        "bytes that cross regions per byte produced: 2",
    ]
    assert lines[5] == "a write waits 30 ms for its quorum, with the current leaders"
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "-", "yes"]]
    assert "partition 0, led by broker 1:" in lines
    assert cells(lines, "LOSS OF") == [
        ["region", "3", "any 2", "any 2"],
        ["broker", "5", "any 3", "any 3"],
    ]
    assert cells(lines, "LEADER")[0] == ["1", "30 ms", "2", "0", "-"]
    assert cells(lines, "LEADER")[-1] == ["5", "80 ms", "2", "0", "-"]


PROMOTED = (
    '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east"]}]},'
    '{"count":2,"where":[{"label":"region","op":"in","values":["west"]}]},'
    '{"role":"observer","count":1,"where":[{"label":"region","op":"in","values":["south"]}]}],'
    '"promotion":"under-min-isr"}'
)


def test_who_acts_after_a_loss_is_told_and_follows_from_the_placement(
    world: World, told: Lines
) -> None:
    lines = told("topic", "explain", "t")
    rows = cells(lines, "LOST ")
    assert rows[0][:3] == ["1 region", "by itself", "kept"]
    assert rows[0][3] == "3 of 5 voters are left, and elect a leader if it is lost"
    assert rows[-2][:3] == ["1 region, cut off", "by itself", "kept"]
    assert rows[-2][3] == (
        "the side that was not cut off continues, with 3 of 5 voters; the other waits until "
        "the cut ends"
    )
    assert rows[-1] == [
        "link between 2 regions", "by itself", "kept",
        "3 of 5 voters continue with their leader; the others catch up when the link is repaired",
    ]  # fmt: skip
    world.voters, world.policy = [[1, 2, 3, 4]], ("", FROM_TOPIC)
    rows = {row[0]: row[1:] for row in cells(told("topic", "explain", "t"), "LOST ")}
    assert rows["1 region"] == [
        "operator", "kept",
        "no leader; the remaining 2 of 4 voters hold every acknowledged record, and continue "
        "after: strandline topic alter t -c voters.shrink.enable=true",
    ]  # fmt: skip
    world.policy, world.min_insync = (PROMOTED, FROM_TOPIC), 3
    world.observers = {0: [5]}
    rows = {row[0]: row[1:] for row in cells(told("topic", "explain", "t"), "LOST ")}
    assert rows["1 region"][2] == (
        "no leader; the remaining 2 of 4 voters hold every acknowledged record, and continue, "
        "with 1 observer, after: strandline topic alter t -c voters.shrink.enable=true"
    )
    world.policy, world.min_insync, world.observers = ("", FROM_TOPIC), 1, {}
    world.shrinks = "true"
    rows = {row[0]: row[1:] for row in cells(told("topic", "explain", "t"), "LOST ")}
    assert rows["1 region"][:2] == ["by itself", "kept"]
    world.seeds = (1, 2, 3)
    (found,) = [
        one
        for one in json.loads("\n".join(told("topic", "explain", "t", "--json")))["losses"]
        if one["loss"] == "1 region" and not one["is_cut"]
    ]
    assert (found["acts_alone"], found["without_controller"]) == (False, True)
    assert found["text"] == "the controller has no majority either: bring 1 back"


def test_who_acts_is_told_without_a_controller_as_with_one(world: World, told: Lines) -> None:
    world.voters, world.policy, world.min_insync = [[1, 2, 3, 4]], (PROMOTED, FROM_TOPIC), 3
    world.seeds, world.observers, world.shrinks = (1, 2, 3, 4, 5), {0: [5]}, "true"
    rows = cells(told("topic", "explain", "t"), "LOST ")
    (gone,) = [row for row in rows if row[0] == "2 regions"]
    assert gone[1:] == [
        "operator", "may be lost",
        "no voter is left, and the controller has no majority either: bring 2 back; or see what "
        "may be lost: strandline partition survivors t PARTITION",
    ]  # fmt: skip
    world.fake.down |= {1, 2, 3, 4}
    assert cells(told("topic", "explain", "t"), "LOST ") == rows


def test_a_topic_that_is_made_tells_who_acts_after_a_loss(world: World, told: Lines) -> None:
    explained = json.loads("\n".join(told("topic", "explain", "t", "--json")))["losses"]
    rows = cells(told("topic", "explain", "t"), "LOST ")
    create = ("topic", "create", "t", "-p", "2", "-c", f"placement.policy={TWO_LOSSES}")
    lines = told(*create)
    assert "topic t, as placed, if all of these are lost at the same time:" in lines
    assert cells(lines, "LOST ") == rows
    (made,) = json.loads("\n".join(told(*create, "--json")))["topics"]
    assert made["losses"] == explained and len(explained) > 3


def test_money_is_told_by_a_price_table(
    world: World, told: Lines, run: Run, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("{currency: EUR, cross_region_per_gb: 0.02}")
    lines = told("topic", "explain", "t", "--prices", str(prices))
    linked = tmp_path / "linked.yaml"
    linked.write_text("{currency: EUR, links: [{from: east, to: mars, per_gb: 9}]}")
    code, _, err = run("topic", "explain", "t", "--prices", str(linked))
    assert code == 1 and "links: there is no region 'mars': brokers are in east, south" in err
    assert "replicating a GB costs 0.04 EUR" in lines
    assert cells(lines, "LEADER")[-1][-1] == "0.04 EUR"


def test_a_broker_that_is_down_is_told_with_what_is_left(world: World, told: Lines) -> None:
    world.fake.down.add(5)
    lines = told("topic", "explain", "t")
    assert "broker 5 is down:" in lines
    assert "  writes continue after the further loss of 1 broker" in lines
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "5", "yes"]]
    assert cells(lines, "LOSS OF") == [
        ["region", "2", "any 1", "any 1"],
        ["broker", "4", "any 2", "any 2"],
    ]
    assert cells(lines, "LEADER")[-1] == ["5", "80 ms", "-", "2", "0", "-"]


def test_a_replica_that_is_not_in_sync_is_told(world: World, told: Lines) -> None:
    world.behind.add(4)
    lines = told("topic", "explain", "t")
    assert "replicas of partitions 0-1 are behind:" in lines
    assert "  writes continue after the further loss of 1 broker" in lines
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "-", "4", "yes"]]
    (heads,) = [line for line in lines if line.startswith("PARTITIONS")]
    assert heads.split("  ")[-2:] == ["BEHIND", "SATISFIES THE POLICY"]
    assert ["4", "voter, behind", "west", "-", "-"] in cells(lines, "BROKER")
    world.fake.down.add(5)
    lines = told("topic", "explain", "t")
    assert "broker 5 is down, and replicas of partitions 0-1 are behind:" in lines
    assert "  some writes stop with the further loss of one replica" in lines


def test_who_votes_now_is_told_and_is_what_all_hangs_on(world: World, told: Lines) -> None:
    world.fake.down |= {1, 3, 4}
    assert any("acks=all is refused by" in line for line in told("topic", "explain", "t"))
    world.acting = {0: [2, 5], 1: [2, 5]}
    lines = told("topic", "explain", "t")
    assert "brokers 1,3,4 are down, and partitions 0-1 run with other voters:" in lines
    assert "  some writes stop with the further loss of one replica" in lines
    assert not any("acks=all is refused by" in line for line in lines)
    (heads,) = [line for line in lines if line.startswith("PARTITIONS")]
    assert "  VOTE NOW  " in heads
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "2,5", "1,3,4", "yes"]]
    lines = told("cluster", "explain")
    assert cells(lines, "TOPIC")[0][-1] == "nothing"
    assert ["broker 2", "2", "2", "0"] in cells(lines, "LOSS OF")
    world.min_insync = 3
    lines = told("topic", "explain", "t")
    assert (
        "  acks=all is refused by partitions 0-1 until enough replicas are in sync again" in lines
    )
    assert cells(told("cluster", "explain"), "TOPIC")[0][-1] == "stopped: 0-1"


def test_an_outage_is_explained_without_a_controller(world: World, told: Lines) -> None:
    world.fake.down |= {1, 3, 4, 5}
    lines = told("topic", "explain", "t", "--partition", "1")
    assert "brokers 1,3,4,5 are down:" in lines
    assert (
        "  acks=all is refused by partitions 0-1 until enough replicas are in sync again" in lines
    )
    assert "without a leader: partitions 0-1" in lines
    assert "partition 1, without a leader:" in lines
    assert not any(line.startswith("LOSS OF") for line in lines)
    lines = told("cluster", "explain")
    assert "5 brokers, down: 1,3,4,5; controller none" in lines[0]
    assert cells(lines, "TOPIC")[0][-1] == "stopped: 0-1"


def test_what_no_longer_holds_is_told_first_with_what_would(world: World, told: Lines) -> None:
    world.voters.append([1, 2, 3])
    lines = told("topic", "explain", "t")
    assert lines[0].startswith("topic t: 3 partitions of 3 to 5 replicas")
    assert "as placed, writes continue after the loss of 1 broker" in lines
    first, second = cells(lines, "PARTITIONS")
    assert first[:4] == ["2", "1,2,3", "2 of 3", "-"]
    assert first[4].startswith("no: survive 1 region does not hold: it can take the voters 1, 2")
    assert second == ["0-1", "1,2,3,4,5", "3 of 5", "-", "yes"]
    assert "partition 2, led by broker 1:" in lines
    assert cells(lines, "BROKER")[0][-1].startswith("4: losing 1 region could then take 2")
    assert lines[-2] == "this would satisfy the policy:"
    assert lines[-1].endswith("partition move t 2 --to 1,2,3,4,5")
    fine = told("topic", "explain", "t", "--partition", "0")
    assert "this would satisfy the policy:" not in fine


WATCHED = (
    '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east","west"]}]},'
    '{"role":"observer","count":1,"where":[{"label":"region","op":"in","values":["south"]}]}]}'
)


def test_observers_are_told_apart_and_count_for_nothing(world: World, told: Lines) -> None:
    world.policy = (WATCHED, FROM_TOPIC)
    world.voters = [[1, 3]]
    world.observers = {0: [5]}
    lines = told("topic", "explain", "t")
    assert lines[0].startswith("topic t: 1 partition of 2 voters and 1 observer, min.insync")
    assert "as placed, some writes stop with the loss of one replica" in lines
    assert cells(lines, "PARTITIONS") == [["0", "1,3", "5", "2 of 2", "-", "yes"]]
    assert [row[:2] for row in cells(lines, "BROKER  ROLE")] == [
        ["1", "voter"], ["3", "voter"], ["5", "observer"],
    ]  # fmt: skip
    assert "a write waits 30 ms for its quorum, with the current leaders" in lines
    assert "bytes that cross regions per byte produced: 2" in lines
    assert cells(told("cluster", "explain"), "TOPIC")[0][:3] == ["t", "1", "2 +1"]
    # One that is down stops nothing, and who explains says so.
    world.fake.down.add(5)
    lines = told("topic", "explain", "t")
    assert not any("is down" in line for line in lines)


def test_observers_that_a_policy_wants_elsewhere_are_moved_by_a_list_that_names_them_last(
    world: World, told: Lines
) -> None:
    world.policy = (WATCHED, FROM_TOPIC)
    world.voters, world.observers = [[1, 3]], {0: [4]}
    lines = told("topic", "explain", "t")
    assert lines[-1].endswith("partition move t 0 --to 1,3,5")
    world.observers = {}
    lines = told("topic", "explain", "t")
    assert lines[-1] == "the balancer moves it to satisfy the policy, for example to 1,3 +5"


def test_a_topic_without_a_policy_is_not_blamed_for_its_observers(
    world: World, told: Lines
) -> None:
    world.policy = ("", DEFAULT)
    world.voters, world.observers = [[1, 3, 5]], {0: [4]}
    lines = told("topic", "explain", "t")
    assert cells(lines, "PARTITIONS") == [["0", "1,3,5", "4", "2 of 3", "-"]]
    assert not any("would be as the policy wants" in line for line in lines)


def test_a_policy_that_cannot_hold_any_more_says_why(world: World, told: Lines) -> None:
    world.min_insync = 5
    lines = told("topic", "explain", "t")
    assert "as placed, some writes stop with the loss of one replica" in lines
    why = lines.index("no placement satisfies the policy: cannot place 7 voters")
    assert any(line.startswith("  this would be possible: ") for line in lines[why:])


def test_a_topic_without_a_policy_and_one_by_the_clusters(world: World, told: Lines) -> None:
    world.policy = ("", DEFAULT)
    lines = told("topic", "explain", "t")
    assert lines[1] == "policy: none: replicas are spread over regions, zones, racks and hosts"
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "-"]]
    world.policy = (TWO_LOSSES, FROM_CLUSTER)
    lines = told("topic", "explain", "t")
    assert lines[1] == f"policy: {TWO_LOSSES} (strandline.placement.policy of the cluster)"


def test_who_would_do_as_well_or_better_and_who_was_refused(world: World, told: Lines) -> None:
    world.policy = (
        '{"rules":[{"count":2,"where":[{"label":"disk","op":"in","values":["ssd"]}]}]}',
        FROM_TOPIC,
    )
    for broker, labels in world.labels.items():
        labels["disk"] = "hdd" if broker == 5 else "ssd"
    world.voters = [[1, 2]]
    lines = told("topic", "explain", "t")
    assert cells(lines, "BROKER")[0] == [
        "1", "voter", "east", "-", "3,4", "5: disk is not in [ssd]",
    ]  # fmt: skip


def test_what_moves_counts_by_the_voters_that_it_has(world: World, told: Lines) -> None:
    world.voters = [[1, 2, 3]]
    world.moving = {0: ([5], [2])}
    lines = told("topic", "explain", "t")
    assert cells(lines, "PARTITIONS")[0][:3] == ["0", "1,2,3", "2 of 3"]
    assert "partition 0, led by broker 1, gets broker 5:" in lines


def test_what_was_not_measured_is_not_made_up(world: World, told: Lines) -> None:
    world.measured = {("east", "west"): 30}
    lines = told("topic", "explain", "t")
    assert cells(lines, "LEADER")[-1][1] == "not measured"
    assert "a write waits 30 ms for its quorum, with the current leaders" in lines
    world.measured = {}
    lines = told("topic", "explain", "t")
    assert "wait of a write not measured for partitions 0-1" in lines
    world.labels = {one: {} for one in REGIONS}
    lines = told("cluster", "explain")
    assert "round trips between regions: unknown, brokers have no region label" in lines
    lines = told("topic", "explain", "t")
    assert any(
        "brokers 1,2,3,4,5 have no region label: they count as one" in line for line in lines
    )


def test_a_broker_that_does_not_answer_is_passed_over(world: World, told: Lines) -> None:
    world.fake.silent.add(3)
    lines = told("topic", "explain", "t")
    # The way to it is known from the other end, and who is in sync, of partition 0 only.
    assert cells(lines, "LEADER")[2] == ["3", "30 ms", "2", "0", "-"]
    assert cells(lines, "PARTITIONS") == [["0-1", "1,2,3,4,5", "3 of 5", "-", "yes"]]
    world.behind.add(5)
    assert "replicas of partition 0 are behind:" in told("topic", "explain", "t")
    assert cells(told("cluster", "explain"), "BROKER")[2][-1] == "?"


def test_why_a_leader_is_not_where_it_is_preferred_is_told(world: World, told: Lines) -> None:
    text = "broker 4 leads once it has been in sync for 300 s: 12 s are left"
    world.waits[1] = [LeaderWait("t", 0, 4, "delay", text), LeaderWait("u", 3, 2, "down", "x")]
    line = f"partition 0 is led by broker 1, not 4 (delay): {text}"
    found = [one for one in told("topic", "explain", "t") if " is led by broker " in one]
    assert found == [line]


def test_brokers_that_do_not_say_where_they_are_are_one_domain(world: World, told: Lines) -> None:
    world.labels[1]["upgrade_domain"] = "7"
    lines = told("topic", "explain", "t")
    assert ["upgrade_domain", "2", *["brokers without the label"] * 2] in cells(lines, "LOSS OF")


def test_a_label_that_a_policy_needs_and_a_broker_lacks_is_named(world: World, told: Lines) -> None:
    del world.labels[4]["region"]
    lines = told("topic", "explain", "t")
    assert any(line.startswith("broker 4 has no label 'region'") for line in lines)
    world.labels = {one: {} for one in REGIONS}
    lines = told("topic", "explain", "t")
    assert any(line.startswith("brokers 1, 2, 3, 4, 5 have no label 'region'") for line in lines)


def test_the_whole_cluster(world: World, told: Lines) -> None:
    world.labels[1]["disk"] = "ssd"
    # By what the broker says: of what the file system keeps back nobody else knows.
    world.used_percent = dict.fromkeys(REGIONS, 27)
    lines = told("cluster", "explain")
    assert lines[0] == "cluster fake: 5 brokers, none down; controller 1"
    rows = cells(lines, "BROKER")
    assert rows[0] == ["1", "east", "disk=ssd", "active", "2", "1", "27 %"]
    assert cells(lines, "REGION")[1:3] == [["east", "south", "80 ms"], ["east", "west", "30 ms"]]
    assert cells(lines, "TOPIC") == [
        ["t", "2", "5", "its own", "yes", "1 region, or 2 brokers", "the same"]
    ]
    assert lines[-1] == "no single further loss stops writes or loses acknowledged ones"
    world.fake.down.add(5)
    lines = told("cluster", "explain")
    assert lines[0] == "cluster fake: 5 brokers, down: 5; controller 1"
    assert cells(lines, "BROKER")[4] == ["5", "south", "-", "down", "2", "0", "?"]
    assert cells(lines, "LOSS OF") == [
        ["region east", "1,2", "2", "2"],
        ["region west", "3,4", "2", "2"],
    ]


def test_what_is_long_is_cut_and_counted(world: World, told: Lines) -> None:
    world.policy = ("", DEFAULT)
    world.fake = FakeCluster(40)
    world.labels = {one: {"region": f"r{one % 3}"} for one in range(1, 41)}
    world.__post_init__()
    world.voters = [[one, one + 1, one + 2] for one in range(1, 31)]
    lines = told("topic", "explain", "t")
    assert len(cells(lines, "PARTITIONS")) == 21
    assert "and 10 more like these; --json shows all" in lines
    assert cells(lines, "BROKER")[0][-2] == "4,7,10,13,16,19,22,25,28,31,34,37 and 1 more"


def test_programs_get_the_same(world: World, told: Lines) -> None:
    world.voters.append([1, 2, 3])
    answer = json.loads("\n".join(told("topic", "explain", "t", "--json")))
    assert (answer["topic"], answer["policy_key"]) == ("t", "placement.policy")
    assert (answer["partition"], answer["leader"], answer["mended"]) == (2, 1, [1, 2, 3, 4, 5])
    assert [one["partitions"] for one in answer["explanation"]["alike"]] == [[2], [0, 1]]
    assert answer["details"]["latencies"][0]["waits_for"] == [2]
    answer = json.loads("\n".join(told("cluster", "explain", "--json")))
    assert answer["brokers"][0]["labels"] == {"region": "east"}
    assert answer["brokers"][0]["disk"] == {
        "logs_bytes": 100, "total_bytes": 1_000, "usable_bytes": 250, "used_percent": None,
    }  # fmt: skip
    world.used_percent = {1: 27}
    answer = json.loads("\n".join(told("cluster", "explain", "--json")))
    assert [one["disk"]["used_percent"] for one in answer["brokers"]] == [27, *[None] * 4]
    assert {"from": 1, "to": 3, "ms": 30} in answer["measured"]
    assert answer["round_trips"][1] == {"between": ["east", "south"], "ms": 80}
    assert [one["domain"] for one in answer["losses"]] == ["east"]


def test_a_policy_is_tried_on_the_cluster_that_runs(
    world: World, told: Lines, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("survive: [region, 2 brokers]")
    lines = told("policy", "test", str(file), "-p", "4")
    assert lines[1] == "4 partitions of 5 replicas; an acknowledged write is on 3 of 5"
    assert [row[2] for row in cells(lines, "BROKER")] == ["4"] * 5
    assert sorted(row[1] for row in cells(lines, "LEADER")) == ["30 ms"] * 4 + ["80 ms"]
    # Of what the policy does not say, the cluster's defaults hold.
    file.write_text("{}")
    assert "12 partitions of 3 replicas" in told("policy", "test", str(file))[1]
    world.fake.down.add(5)
    assert "down brokers: 5" in told("policy", "test", str(file))
    file.write_text("survive: 2 regions")
    code, out, err = run("policy", "test", str(file))
    assert (code, out) == (1, "") and "this would be possible" in err
    file.write_text("rules: [{role: observer, count: 1}]")
    lines = told("policy", "test", str(file))
    assert "12 partitions of 4 replicas; an acknowledged write is on 2 of 3" in lines
    assert sorted(row[1] for row in cells(lines, "BROKER  ROLE")) == [
        *(["observer"]),
        *(["voter"] * 3),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("topic", "explain", "no"), "topic no does not exist; see `strandline topic list`"),
        (
            ("topic", "explain", "t", "--partition", "2"),
            "topic t has no partition 2: its partitions are 0 to 1",
        ),
    ],
)
def test_what_cannot_be_explained_is_one_line(
    world: World, run: Run, arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = run(*arguments)
    assert (code, out, err) == (1, "", f"error: {says}\n")


# ---- leaders that follow the writers -------------------------------------------------------------


def test_where_writers_are_is_told_with_the_reason_for_each_leader(
    world: World, told: Lines
) -> None:
    world.policy = ('{"leaders":{"follow":"writers"}}', FROM_TOPIC)
    waits = "west produces 75 %, for 60 s of 300 s"
    regions = [WriterRegion("west", 750), WriterRegion("", 250)]
    world.writers = [
        WrittenPartition(0, "waits", waits, regions),
        WrittenPartition(1, "idle", "no client has produced for 300 s"),
    ]
    lines = told("topic", "explain", "t")
    at = lines.index("leaders follow the writers:")
    assert cells(lines[at:], "PARTITIONS") == [
        ["0", "waits", waits],
        ["1", "idle", "no client has produced for 300 s"],
    ]
    world.writers[1] = WrittenPartition(1, "waits", waits, regions)
    lines = told("topic", "explain", "t")
    assert cells(lines[lines.index("leaders follow the writers:") :], "PARTITIONS") == [
        ["0-1", "waits", waits]
    ]
    one = json.loads("".join(told("topic", "explain", "t", "--json")))["writers"][0]
    assert one["shares"] == {"west": 0.75, "?": 0.25} and one["code"] == "waits"


def test_of_a_topic_that_does_not_follow_nobody_is_asked(world: World, told: Lines) -> None:
    world.writers = [WrittenPartition(0, "idle", "no client has produced for 300 s")]
    assert "leaders follow the writers:" not in told("topic", "explain", "t")
    assert json.loads("".join(told("topic", "explain", "t", "--json")))["writers"] == []


def test_a_policy_that_follows_writers_of_whom_nothing_is_known_is_refused_when_it_is_tried(
    world: World, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("leaders: {follow: writers}\n")
    code, out, err = run("policy", "test", str(file))
    assert (code, out) == (1, "") and "set client.networks for the cluster" in err
    assert err.count("\n") == 1
    world.networks = "east=10.1.0.0/16"
    code, out, err = run("policy", "test", str(file))
    assert (code, err) == (0, "") and "12 partitions of 3 replicas" in out


def test_the_line_counts_an_appointed_half_as_the_table_does(
    world: World, told: Lines, run: Run, tmp_path: Path
) -> None:
    """Two and two: half may be lost where voters may leave; brokers 1 and 3 are two of the
    controller's three voters."""
    world.voters, world.policy, world.shrinks = [[1, 2, 3, 4]], ("", FROM_TOPIC), "true"
    lines = told("topic", "explain", "t")
    assert "as placed, writes continue after the loss of 1 region" in lines
    rows = {row[0]: row[1] for row in cells(lines, "LOST ")}
    assert (rows["1 region"], rows["2 brokers"]) == ("by itself", "operator")
    assert cells(lines, "LOSS OF")[0][:3] == ["region", "3", "any 2"]
    row = cells(told("cluster", "explain"), "TOPIC")[0]
    assert row[-2:] == ["1 region", "the same"]
    assert any(
        line.startswith("no single further loss stops writes")
        for line in told("cluster", "explain")
    )
    world.shrinks = "false"
    lines = told("topic", "explain", "t")
    assert "as placed, writes continue after the loss of 1 broker" in lines
    assert {row[0]: row[1] for row in cells(lines, "LOST ")}["1 region"] == "operator"
    policy = tmp_path / "policy.json"
    policy.write_text(PROMOTED)
    code, out, _ = run("policy", "test", str(policy), "--min-insync", "3", "-p", "1")
    assert code == 0 and "\nwrites continue after the loss of 1 region" in out


def test_while_something_is_down_a_second_table_begins_from_now(world: World, told: Lines) -> None:
    title = "topic t, from now, if all of these are lost as well:"
    assert title not in told("topic", "explain", "t")
    world.fake.down.add(5)
    lines = told("topic", "explain", "t")
    assert cells(lines, "LOST ")[0][:2] == ["1 region", "by itself"]
    now = lines[lines.index(title) :]
    rows = {row[0]: row[1:] for row in cells(now, "LOST ")}
    assert rows["1 region"][:2] == ["operator", "may be lost"]
    assert rows["1 broker"] == [
        "by itself", "kept", "3 of 5 voters are left, and elect a leader if it is lost",
    ]  # fmt: skip
    assert "  writes continue after the further loss of 1 broker" in lines
    found = json.loads("\n".join(told("topic", "explain", "t", "--json")))
    assert {one["loss"]: one["acts_alone"] for one in found["losses_now"]}["1 broker"]
    # Of what has stopped nothing more is told.
    world.fake.down |= {1, 2}
    assert title not in told("topic", "explain", "t")

"""Replicas move away from disks that are too full, the fewest bytes, to where there is room.

Source: docs/decisions/0010-the-balancer.md, "Room"."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, LOST_AFTER_MS, ids
from tests.controller.balancer.disk_world import GB, DiskWorld

from strandline.controller.balancer.disks import VALID_MS, Disks
from strandline.controller.balancer.fullness import LASTING_MS
from strandline.controller.balancer.relief import _choice
from strandline.controller.commands import AlterReassignments, WantedReplicas
from strandline.controller.reports import Report
from strandline.model.cluster import Partition, Roles
from strandline.model.ids import BrokerId, GroupId

SIX = ("east", "east", "west", "west", "south", "south")
SURVIVE = "survive: region"
DECOMMISSION, MAINTENANCE, BROKER = "broker.decommission", "broker.maintenance.until.ms", 4


def on(gigabytes: Sequence[int], foreign: Sequence[int], policy: str | None = SURVIVE) -> DiskWorld:
    """A topic on brokers 1, 3 and 5 of six, two in each region; what is only better waits."""
    world = DiskWorld(SIX)
    world.unrest()
    world.logs("flights", (1, 3, 5), gigabytes)
    if policy is not None:
        assert world.alter("flights", "placement.policy", policy) == (0, "")
    world.fill(foreign)
    return world


def gone(world: DiskWorld, broker: int) -> list[int]:
    """The sizes, in GB, of what is to leave a broker."""
    sizes = [
        world.log_bytes[one.group] // GB
        for one in world.on(broker)
        if BrokerId(broker) in one.removing
    ]
    return sorted(sizes)


def text_of(world: DiskWorld, code: str) -> str:
    return world.waits()[code][0]


# ---- what moves ----------------------------------------------------------------------------------


def test_the_fewest_bytes_move_to_where_there_is_room_in_the_same_region() -> None:
    world = on([30, 12, 9, 4], foreign=[36, 10, 20, 20, 20, 20])
    assert world.used_percent(1) == 91
    moves = world.round()
    assert [move.code for move in moves] == ["disk-high"]
    assert gone(world, 1) == [12]
    assert moves[0].command.target == ids(2, 3, 5)
    world.settle()
    assert world.round() == [] and world.used_percent(1) == 79
    assert world.regions() == {("east", "south", "west")}


def test_what_goes_already_is_counted_and_frees_nothing_before_the_end() -> None:
    world = on([6] * 10, foreign=[31, 10, 20, 20, 20, 20])
    world.alter("", "balancer.moves.max", "1", scope=CLUSTER)
    world.round()
    assert gone(world, 1) == [6] and world.waits()["turn"][1] == 1
    for copied in (0.0, 0.5, 1.0):
        world.copied = copied
        world.wait(10_000)
        assert world.round() == [] and gone(world, 1) == [6]
    world.settle()
    assert world.used_percent(1) == 85
    world.round()
    assert gone(world, 1) == [6]
    text = "disk of broker 1 is 85 % full, 80 is wanted; what goes already is enough"
    assert world.waits() == {"disk-high": (text, 0)}
    world.settle()
    assert world.used_percent(1) == 79 and world.rest() == 0 and world.waits() == {}


def test_a_target_is_filled_to_the_low_mark_and_no_further() -> None:
    world = on([6] * 10, foreign=[40, 67, 0, 0, 0, 0])
    world.rest()
    assert [world.used_percent(one) for one in (1, 2)] == [88, 79]
    text = "disk of broker 1 is 88 % full, 80 is wanted; needs a broker with region=east with "
    text += "6.0 GB free below 80 %"
    assert world.waits()["disk-high"] == (text, 8)


def test_a_copy_that_has_begun_takes_its_room_once() -> None:
    """Where half a copy is on the disk, the other half is still to come, and not all of it again;
    and when it has just ended, what was told before is not all there is."""
    partition = Partition("a", 0, GroupId(1), ids(1), target=ids(2))
    disks = Disks()
    cluster = DiskWorld(("east",)).state.cluster
    cluster.groups[partition.group] = partition
    cluster.moving.add(partition.group)

    def left(broker: int) -> int:
        room = disks.room(0, low_percent=80)
        for _ in room.steps(cluster):
            pass
        return room.free_bytes(BrokerId(broker)) // GB

    full = Report(50 * GB, 50 * GB, {partition.group: 10 * GB})
    disks.hear({BrokerId(1): full, BrokerId(2): Report(40 * GB, 60 * GB)}, asked_ms=0)
    assert (left(1), left(2)) == (30, 30)
    half = Report(45 * GB, 55 * GB, {partition.group: 5 * GB})
    disks.hear({BrokerId(2): half}, asked_ms=0)
    assert left(2) == 30
    done = Partition("a", 0, GroupId(1), ids(2), version=1)
    cluster.groups[partition.group] = done
    cluster.moving.clear()
    disks.note_change(done.group, 0)
    assert (left(1), left(2)) == (40, 30)
    whole = Report(50 * GB, 50 * GB, {partition.group: 10 * GB})
    disks.hear({BrokerId(1): Report(40 * GB, 60 * GB), BrokerId(2): whole}, asked_ms=1)
    assert (left(1), left(2)) == (40, 30)
    del cluster.groups[partition.group]
    assert (left(1), left(2)) == (40, 40)


def test_a_log_that_went_takes_its_room_again_where_it_comes_back() -> None:
    """What was told when it was still there says nothing about what a new copy takes."""
    partition = Partition("a", 0, GroupId(1), ids(1))
    disks = Disks()
    cluster = DiskWorld(("east",)).state.cluster
    cluster.groups[partition.group] = partition
    log = {partition.group: 10 * GB}
    told = Report(85 * GB, 15 * GB, log)
    disks.hear({BrokerId(1): told, BrokerId(2): told}, asked_ms=0)
    room = disks.room(0, low_percent=80)
    for _ in room.steps(cluster):
        pass
    assert room.free_bytes(BrokerId(2)) == 5 * GB
    assert not room.has_room(BrokerId(2), partition)
    room.move(partition, Roles(ids(2)))
    assert room.free_bytes(BrokerId(2)) == -5 * GB
    assert room.excess_bytes(BrokerId(1)) == -5 * GB and room.free_bytes(BrokerId(1)) == -5 * GB
    room.move(replace(partition, target=ids(2)), Roles(()))
    assert (room.free_bytes(BrokerId(2)), room.excess_bytes(BrokerId(1))) == (5 * GB, 5 * GB)


@pytest.mark.parametrize(
    ("sizes", "excess", "first"),
    [
        ([9, 11, 100], 10, 11),
        ([2, 9, 100], 10, 9),
        ([3, 25], 10, 25),
        ([1, 2, 3], 10, 3),
        ([20], 10, 20),
        ([10], 10, 10),
    ],
)
def test_the_smallest_that_is_enough_goes_unless_it_is_far_too_much(
    sizes: list[int], excess: int, first: int
) -> None:
    assert sizes[_choice(sizes, excess)] == first


def test_without_a_policy_the_spread_becomes_no_worse() -> None:
    world = on([10, 10], foreign=[70, 0, 0, 0, 0, 0], policy=None)
    world.rest()
    assert sorted(world.replicas()) == [(1, 3, 5), (2, 3, 5)]
    world = on([10, 10], foreign=[70, 75, 0, 0, 0, 0], policy=None)
    assert world.rest() == 0
    assert "needs a broker with region=east with 10.0 GB free" in text_of(world, "disk-high")


def test_a_partition_with_one_replica_moves_too() -> None:
    world = DiskWorld(("east", "east"))
    world.logs("single", (1,), [30, 20])
    world.fill([40, 0])
    world.round()
    assert gone(world, 1) == [20]
    world.settle()
    assert world.replicas("single") == [(1,), (2,)] and world.rest() == 0


def test_what_soft_rules_prefer_gives_way_to_a_full_disk_and_comes_back_when_there_is_room() -> (
    None
):
    world = DiskWorld(("east", "east", "west"))
    soft = '{"rules":[{"count":1,"level":"soft","where":[{"label":"region","op":"in","values":'
    soft += '["east"]}]}]}'
    world.topic("soft", policy=soft, partitions=4)
    for partition in world.state.cluster.topics["soft"].partitions:
        world.log_bytes[partition.group] = 10 * GB
    world.rest()
    assert {one[0] for one in world.replicas("soft")} == {1, 2}
    world.fill([70, 70, 0])
    assert world.rest() == 2
    assert sorted(world.replicas("soft")) == [(1,), (2,), (3,), (3,)]
    assert world.rest() == 0
    text = "the disks of brokers 1, which could take a replica, have no room for it below 80 %"
    assert world.waits()["disk-full"] == (text, 2)
    world.fill([0, 0, 0])
    world.rest()
    assert {one[0] for one in world.replicas("soft")} == {1, 2}


def test_a_rule_for_one_replica_finds_another_of_them_to_keep_it() -> None:
    """Who leaves was the one on `west`, but another of the replicas is there, too."""
    world = DiskWorld(("west", "west", "east", "east"))
    west = '{"rules":[{"count":1,"where":[{"label":"region","op":"in","values":["west"]}]},'
    world.logs("flights", (1, 2, 3), [20])
    world.alter("flights", "placement.policy", west + '{"count":2}]}')
    world.fill([70, 0, 0, 0])
    world.rest()
    assert world.replicas() == [(2, 3, 4)]


# ---- what does not -------------------------------------------------------------------------------


def test_a_moment_moves_nothing() -> None:
    world = on([10, 10], foreign=[0] * 6)
    world.foreign_bytes[BrokerId(1)] = 70 * GB
    world.wait(LASTING_MS - 5_000)
    assert world.round() == []
    world.wait(5_000)
    assert len(world.round()) == 1


def test_where_every_disk_is_full_nothing_moves_and_that_is_said() -> None:
    world = on([10, 10], foreign=[70, 90, 70, 90, 70, 90])
    assert world.rest() == 0
    full = {text for (code, text) in world.look().waits.found if code == "disk-high"}
    nobody = "no other broker has a disk below 80 % that may be given replicas"
    for broker in (1, 3, 5):
        assert f"disk of broker {broker} is 90 % full, 80 is wanted; {nobody}" in full


def test_a_replica_that_fits_nowhere_stays_and_smaller_ones_go() -> None:
    world = on([50, 4, 4], foreign=[30, 32, 20, 20, 20, 20])
    world.rest()
    assert world.used_percent(1) == 80
    world = on([50], foreign=[40, 32, 20, 20, 20, 20])
    assert world.rest() == 0
    needed = "needs a broker with region=east with 50.0 GB free below 80 %"
    assert world.waits()["disk-high"] == (
        f"disk of broker 1 is 90 % full, 80 is wanted; {needed}",
        1,
    )


def test_a_policy_that_only_full_brokers_can_meet_holds() -> None:
    east = '{"rules":[{"count":2,"where":[{"label":"region","op":"in","values":["east"]}]}]}'
    world = DiskWorld(SIX)
    world.logs("flights", (1, 2), [10, 10])
    world.alter("flights", "placement.policy", east)
    world.fill([70, 0, 0, 0, 0, 0])
    world.rest()
    assert set(world.replicas()) == {(1, 2)}
    assert "needs a broker with region=east with 10.0 GB free" in text_of(world, "disk-high")
    world.add_broker(7, "east")
    world.wait(60_000)
    world.rest()
    assert world.used_percent(1) == 80


def test_what_is_no_log_is_said_to_be_in_the_way() -> None:
    world = on([4], foreign=[90, 0, 0, 0, 0, 0])
    assert world.rest() == 0
    text = "disk of broker 1 is 94 % full, 80 is wanted; 90.0 GB there are no logs of partitions: "
    assert world.waits()["disk-high"] == (f"{text}no move would bring it below 85 %", 0)


def test_paused_it_is_said_what_would_move() -> None:
    world = on([10, 10], foreign=[70, 0, 0, 0, 0, 0])
    world.alter("", "balancer.enable", "false", scope=CLUSTER)
    assert world.round() == []
    text = "disk of broker 1 is 90 % full, 80 is wanted; balancer.enable is false"
    assert world.waits()["paused"] == (text, 1)


def test_who_tells_nothing_gives_nothing_and_is_given_nothing() -> None:
    world = on([10, 10], foreign=[70, 0, 0, 0, 0, 0])
    world.silent = {BrokerId(2)}
    world.wait(VALID_MS + 5_000)
    assert world.round() == []
    assert "no" not in text_of(world, "disk-high").split()
    assert "needs a broker with region=east" in text_of(world, "disk-high")
    world.silent = {BrokerId(1)}
    world.wait(VALID_MS + 5_000)
    assert world.round() == []
    assert text_of(world, "disk-high").endswith("80 is wanted; the broker does not answer")
    world.silent = set()
    world.wait(1_000)
    assert len(world.round()) == 1


def test_what_is_lost_comes_first() -> None:
    world = on([10] * 4, foreign=[45, 0, 0, 0, 0, 0])
    world.alter("", "balancer.moves.max", "4", scope=CLUSTER)
    world.down(5)
    assert world.round() == []
    assert text_of(world, "broker-down").startswith("broker 5 is down")
    world.wait(LOST_AFTER_MS)
    world.foreign_bytes[BrokerId(1)] = 50 * GB
    world.wait(LASTING_MS)
    assert {move.code for move in world.round()} == {"broker-lost"}
    world.settle()
    assert {move.code for move in world.round()} == {"disk-high"}


def test_who_leaves_is_emptied_for_that_and_is_given_nothing() -> None:
    world = on([10, 10], foreign=[0, 0, 0, 0, 0, 0])
    assert world.alter("1", DECOMMISSION, "true", scope=BROKER) == (0, "")
    world.foreign_bytes[BrokerId(1)] = 70 * GB
    world.wait(LASTING_MS)
    assert {move.code for move in world.round()} == {"decommission"}
    world = on([10, 10], foreign=[0, 0, 0, 0, 0, 0])
    assert world.alter("2", DECOMMISSION, "true", scope=BROKER) == (0, "")
    world.foreign_bytes[BrokerId(1)] = 70 * GB
    world.wait(LASTING_MS)
    assert world.round() == []


def test_who_is_in_maintenance_is_given_nothing_and_left_alone() -> None:
    world = on([10, 10], foreign=[70, 0, 0, 0, 0, 0])
    for broker in ("2", "1"):
        assert world.alter(broker, MAINTENANCE, "-1", scope=BROKER) == (0, "")
        world.wait(1_000)
        assert world.round() == []
        if broker == "2":
            assert "needs a broker with region=east with 10.0 GB" in text_of(world, "disk-high")
    text = "disk of broker 1 is 90 % full, 80 is wanted; it is in maintenance, and left alone"
    assert world.waits()["disk-high"] == (text, 0)
    world.alter("1", MAINTENANCE, None, scope=BROKER)
    world.alter("2", MAINTENANCE, None, scope=BROKER)
    world.wait(1_000)
    assert len(world.round()) == 1


def test_what_a_person_moves_or_has_just_moved_is_left_where_it_is() -> None:
    world = on([10], foreign=[0, 70, 0, 0, 0, 0], policy=None)
    wanted = WantedReplicas(topic="flights", index=0, replicas=ids(2, 3, 5))
    world.run(AlterReassignments((wanted,)))
    world.copied = 1.0
    world.wait(LASTING_MS + 5_000)
    assert world.used_percent(2) == 80
    world.foreign_bytes[BrokerId(2)] = 80 * GB
    world.wait(LASTING_MS + 5_000)
    assert world.round() == []
    world.settle()
    world.by_hand = {world.partition().group}
    assert world.round() == []
    text = "disk of broker 2 is 90 % full, 80 is wanted; an operator moved them lately"
    assert world.waits()["by-hand"] == (text, 1)
    world.by_hand = set()
    assert [move.command.target for move in world.round()] == [ids(1, 3, 5)]


def test_a_move_that_was_stopped_is_not_begun_again() -> None:
    world = on([10], foreign=[80, 0, 0, 0, 0, 0])
    world.stopped = {world.partition().group}
    assert world.round() == []
    assert text_of(world, "stopped").endswith("their moves were stopped by hand")


def test_a_copy_to_a_disk_that_has_become_full_is_given_up() -> None:
    world = on([10], foreign=[80, 0, 0, 0, 0, 0])
    world.round()
    assert gone(world, 1) == [10]
    world.foreign_bytes[BrokerId(2)] = 90 * GB
    world.wait(1_000)
    world.round()
    assert gone(world, 1) == [] and world.replicas() == [(1, 3, 5)]
    assert world.rest() == 0


def test_another_controller_counts_what_moves_by_what_it_hears_itself() -> None:
    world = on([6] * 10, foreign=[31, 10, 20, 20, 20, 20])
    world.round()
    assert gone(world, 1) == [6, 6]
    world.copied = 0.5
    world.disks, world.reasons = Disks(), {}
    assert world.round() == []
    world.wait(LASTING_MS)
    assert world.round() == [] and gone(world, 1) == [6, 6]


def test_evenness_fills_nothing_above_the_low_mark() -> None:
    world = DiskWorld(SIX)
    world.logs("flights", (1, 3, 5), [3] * 8)
    world.alter("flights", "placement.policy", SURVIVE)
    world.fill([20, 79, 20, 20, 20, 20])
    world.rest()
    assert world.used_percent(2) == 79
    world.foreign_bytes[BrokerId(2)] = 40 * GB
    world.wait(1_000)
    assert world.rest() > 0 and world.used_percent(2) > 40


def test_the_marks_are_read_anew_and_the_low_one_is_never_the_higher() -> None:
    world = on([10, 10], foreign=[60, 0, 0, 0, 0, 0])
    assert world.rest() == 0
    world.alter("", "balancer.disk.high.percent", "75", scope=CLUSTER)
    world.wait(LASTING_MS + 5_000)
    world.rest()
    assert world.used_percent(1) == 70

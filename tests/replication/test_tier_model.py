"""The tier's state is a function of the committed log on every replica, in every order of events.

Source: decision 0057; see `tier_model` for what can happen."""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import pytest
from tests.replication.tier_model import Group
from tests.tiered.state.entries import intend

from strandline.replication.replica.tier import ReplicaTier
from strandline.tiered.state.commands import BucketImage
from strandline.tiered.state.encoding import decode, is_checkpoint

SEEDS = 20
STEPS = 300


@dataclass(frozen=True)
class Move:
    """Something that may happen, so often in relation to others."""

    name: str
    weight: int
    do: Callable[[Group, random.Random], object]


def command(kind: str) -> Callable[[Group, random.Random], None]:
    def do(group: Group, _: random.Random) -> None:
        found = group.next_command(kind) if group.serves else None
        if found is not None:
            group.propose(found)

    return do


def some(group: Group, rng: random.Random) -> int:
    return rng.randrange(len(group.members))


def replicate(group: Group, rng: random.Random) -> None:
    """Mostly with the flush, and with the leader's."""
    member = group.members[some(group, rng)]
    group.replicate(member)
    if rng.random() < 0.7:
        group.flush(member)


def repeat(group: Group, rng: random.Random) -> None:
    """A command of an earlier entry comes again, late."""
    payloads = [one.payload for one in group.history if one.payload is not None]
    commands = [one for one in payloads if not is_checkpoint(one)]
    if commands and group.serves:
        group.propose(decode(rng.choice(commands)))  # type: ignore[arg-type]


MOVES = (
    Move("record", 6, lambda g, _: g.record()),
    Move("intend", 6, command("intend")),
    Move("live", 8, command("live")),
    Move("abandon", 1, command("abandon")),
    Move("retire", 2, command("retire")),
    Move("intend replace", 3, command("intend replace")),
    Move("replace", 5, command("replace")),
    Move("give up replacing", 1, command("give up replacing")),
    Move("mark", 1, command("mark")),
    Move("forget", 1, command("forget")),
    Move("repeat", 2, repeat),
    Move("delete", 1, lambda g, r: g.delete(r.randint(0, g.leader.log.end_offset))),
    Move("checkpoint", 3, lambda g, _: g.checkpoint()),
    Move("replicate", 60, replicate),
    Move("advance", 20, lambda g, _: g.advance()),
    Move("learn", 12, lambda g, r: g.learn(g.members[some(g, r)])),
    Move("learn late", 6, lambda g, r: g.learn(g.members[some(g, r)], share=r.random())),
    Move("flush", 8, lambda g, r: g.flush(g.members[some(g, r)])),
    Move("retain", 12, lambda g, r: g.retain(g.members[some(g, r)])),
    Move("maintain", 8, lambda g, r: g.maintain(g.members[some(g, r)])),
    Move("soon", 4, lambda g, r: g.run_soon(g.members[some(g, r)])),
    Move("elect", 1, lambda g, r: g.elect(g.members[some(g, r)])),
    Move("restart", 3, lambda g, r: g.restart(g.members[some(g, r)], loses=r.randint(0, 5))),
)


def run(seed: int, steps: int) -> Group:
    """One history; each step of it is checked."""
    rng = random.Random(seed)
    group = Group()
    weights = [one.weight for one in MOVES]
    done: list[str] = []
    for _ in range(steps):
        move = rng.choices(MOVES, weights)[0]
        done.append(move.name)
        move.do(group, rng)
        try:
            group.check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, after {len(done)} steps: {error}") from error
    return group


def test_every_replica_has_the_state_of_its_committed_log() -> None:
    groups = [run(seed, STEPS) for seed in range(SEEDS)]
    assert sum(one.leader.log.start_index > 0 for one in groups) > SEEDS // 10
    assert sum(one.leader.tier.checkpoint_index >= 0 for one in groups) > SEEDS // 3
    images = [one.leader.tier.state.checkpoint().buckets for one in groups]
    assert any(_is_merged(one) for buckets in images for one in buckets)


def _is_merged(image: BucketImage) -> bool:
    return any(one.end_offset - one.base_offset > 1 for one in image.live)


@pytest.mark.long
def test_every_replica_has_the_state_of_its_committed_log_in_many_histories() -> None:
    for seed in range(1_000, 3_000):
        run(seed, STEPS)


def each_move(group: Group) -> list[Callable[[Group], object]]:
    """Everything that may happen next, with each member."""
    rng = random.Random(0)
    kinds = ("intend", "live", "abandon", "retire", "forget", "intend replace", "replace", "mark")
    moves: list[Callable[[Group], object]] = [
        lambda g, kind=kind: command(kind)(g, rng)  # type: ignore[misc]
        for kind in kinds
    ]
    moves += [Group.record, Group.checkpoint, Group.advance]
    for at in range(len(group.members)):
        moves += [
            lambda g, at=at: g.replicate(g.members[at]),
            lambda g, at=at: g.learn(g.members[at]),
            lambda g, at=at: g.learn(g.members[at], share=0.5),
            lambda g, at=at: g.retain(g.members[at]),
            lambda g, at=at: g.maintain(g.members[at]),
            lambda g, at=at: g.elect(g.members[at]),
            lambda g, at=at: g.restart(g.members[at], loses=1),
        ]
    return moves


def exhaust(group: Group, depth: int) -> int:
    """Take every sequence of so many moves from here; how many groups were looked at."""
    count = 1
    for move in each_move(group):
        following = deepcopy(group)
        move(following)
        following.check()
        if depth > 1:
            count += exhaust(following, depth - 1)
    return count


def test_every_move_from_many_positions() -> None:
    for seed in range(10):
        exhaust(run(seed, 10 * (seed + 1)), 1)


@pytest.mark.long
@pytest.mark.parametrize("position", range(6))
def test_every_sequence_of_moves_from_a_position(position: int) -> None:
    assert exhaust(run(50 + position, 20 + 15 * position), 3) > 500


class TestPlantedMistakes:
    """Each is found."""

    def broken(
        self,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        value: object,
        seeds: range = range(SEEDS),
    ) -> None:
        monkeypatch.setattr(ReplicaTier, name, value)
        with pytest.raises(AssertionError):
            for seed in seeds:
                run(seed, STEPS)

    def test_retention_that_does_not_wait_for_a_checkpoint(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.broken(monkeypatch, "removable_index", 1 << 40)

    def test_checkpoint_while_markers_are_under_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, "is_settled", True)

    def test_process_that_takes_an_old_commit_for_the_present(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Few histories have all that it takes; one of these has.
        value = property(lambda self: self.is_known)
        self.broken(monkeypatch, "knows_start", value, range(50, 70))

    def test_state_that_is_kept_over_a_reset(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def on_reset(self: ReplicaTier) -> None:
            if not hasattr(self, "is_known") or self._applied < 0:
                self.is_known = True

        self.broken(monkeypatch, "on_reset", on_reset)


def test_markers_are_forgotten_only_behind_a_durable_checkpoint() -> None:
    """A power failure may take the checkpoint, and leave summaries without the markers."""
    group = Group()
    member = group.leader
    group.record()
    for other in group.members:
        for _ in range(2):
            group.replicate(other)
        group.flush(other)
    group.advance()
    group.propose(intend(0, 1))
    group.checkpoint()
    group.advance()
    assert [at for at, _ in member.log.tier_markers] == [2]
    for other in group.members[1:]:
        group.replicate(other)
        group.flush(other)
    group.advance()
    group.run_soon(member)
    for other in group.members[1:]:
        group.replicate(other)
        group.flush(other)
    group.advance()
    assert (member.tier.checkpoint_index, member.log.flushed_index) == (3, 1)
    member.tier.maintain()
    assert [at for at, _ in member.log.tier_markers] == [2, 3]
    group.flush(member)
    member.tier.maintain()
    assert [at for at, _ in member.log.tier_markers] == [3]


def test_retention_runs_again_once_a_new_checkpoint_is_durable() -> None:
    """It waited for this checkpoint, on every replica; its next round may be minutes away."""
    group = Group()

    def everyone(*, flushes: bool) -> None:
        for one in group.members:
            for _ in range(3):
                group.replicate(one)
            if flushes:
                group.flush(one)
                one.tier.on_flushed()
        group.advance()
        for one in group.members:
            group.learn(one)

    group.record()
    everyone(flushes=True)
    group.propose(intend(0, 1))
    everyone(flushes=True)
    group.checkpoint()
    follower = group.members[2]
    for one in group.members[:2]:
        group.replicate(one)
        group.flush(one)
    everyone(flushes=False)
    for one in group.members:
        for callback in one.soon:
            callback()
    assert [one.tier.checkpoint_index for one in group.members] == [3, 3, 3]
    assert [one.clean_count for one in group.members] == [1, 1, 0], "its disk lacks the checkpoint"

    follower.soon.clear()
    group.flush(follower)
    follower.tier.on_flushed()
    for callback in follower.soon:
        callback()
    assert follower.clean_count == 1

    follower.open()
    follower.learn(3)
    assert follower.tier.checkpoint_index == 3
    assert follower.soon == [], "a start finds nothing new"


def test_damage_that_takes_the_checkpoint_leaves_no_state_that_seems_whole() -> None:
    """Summaries of earlier segments lack the markers: the state waits for the next checkpoint."""
    member = Group().leader
    member.open()
    assert member.tier.is_known
    member.log.forgotten = 5
    member.open()
    assert not member.tier.is_known
    assert not member.tier.knows_start

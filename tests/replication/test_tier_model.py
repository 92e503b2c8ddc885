"""The tier's state is a function of the committed log on every replica, in every order of events.

Source: decision 0057; see `tier_model` for what can happen."""

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import pytest
from tests.replication.tier_model import Group

from strandline.replication.replica.tier import ReplicaTier
from strandline.tiered.state.encoding import decode, is_checkpoint

SEEDS = 120
STEPS = 120


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
    Move("forget", 1, command("forget")),
    Move("repeat", 2, repeat),
    Move("delete", 1, lambda g, r: g.delete(r.randint(0, g.leader.log.end_offset))),
    Move("checkpoint", 3, lambda g, _: g.checkpoint()),
    Move("replicate", 40, lambda g, r: g.replicate(g.members[some(g, r)])),
    Move("advance", 20, lambda g, _: g.advance()),
    Move("learn", 12, lambda g, r: g.learn(g.members[some(g, r)])),
    Move("flush", 4, lambda g, r: g.flush(g.members[some(g, r)])),
    Move("retain", 12, lambda g, r: g.retain(g.members[some(g, r)])),
    Move("soon", 4, lambda g, r: g.run_soon(g.members[some(g, r)])),
    Move("elect", 1, lambda g, r: g.elect(g.members[some(g, r)])),
    Move("restart", 2, lambda g, r: g.restart(g.members[some(g, r)], loses=r.randint(0, 3))),
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


@pytest.mark.long
def test_every_replica_has_the_state_of_its_committed_log_in_many_histories() -> None:
    for seed in range(1_000, 4_000):
        run(seed, 300)


def each_move(group: Group) -> list[Callable[[Group], object]]:
    """Everything that may happen next, with each member."""
    rng = random.Random(0)
    kinds = ("intend", "live", "abandon", "retire", "forget")
    moves: list[Callable[[Group], object]] = [
        lambda g, kind=kind: command(kind)(g, rng)  # type: ignore[misc]
        for kind in kinds
    ]
    moves += [Group.record, Group.checkpoint, Group.advance]
    for at in range(len(group.members)):
        moves += [
            lambda g, at=at: g.replicate(g.members[at]),
            lambda g, at=at: g.learn(g.members[at]),
            lambda g, at=at: g.retain(g.members[at]),
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
    for seed in range(20):
        exhaust(run(seed, 10 * (seed + 1)), 1)


@pytest.mark.long
@pytest.mark.parametrize("position", range(6))
def test_every_sequence_of_moves_from_a_position(position: int) -> None:
    assert exhaust(run(50 + position, 20 + 15 * position), 3) > 500


class TestPlantedMistakes:
    """Each is found."""

    def broken(self, monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
        monkeypatch.setattr(ReplicaTier, name, value)
        with pytest.raises(AssertionError):
            for seed in range(SEEDS * 10):
                run(seed, STEPS)

    def test_retention_that_does_not_wait_for_a_checkpoint(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.broken(monkeypatch, "removable_index", 1 << 40)

    def test_checkpoint_while_markers_are_under_way(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.broken(monkeypatch, "is_settled", True)

    def test_state_that_is_kept_over_a_reset(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def on_reset(self: ReplicaTier) -> None:
            if not hasattr(self, "is_known") or self._applied < 0:
                self.is_known = True

        self.broken(monkeypatch, "on_reset", on_reset)

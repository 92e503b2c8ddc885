"""A group keeps what it promises under any schedule.

Members join, sync, leave, fall silent and commit; the log commits late, or fails; coordinators come
and go."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.coordinator.group_world import GROUP, World

from strandline.coordinator.answers import CommitAnswer, JoinAnswer, SyncAnswer
from strandline.coordinator.replay import LoadedGroup, OffsetsState
from strandline.coordinator.requests import JoinGroup, LeavingMember, OffsetToCommit, SyncGroup
from strandline.protocol.errors import Error

CLIENTS = 4
STATIC_CLIENTS = 2
PROTOCOLS = ((("range", b"r"),), (("range", b"q"), ("sticky", b"s")))


@dataclass
class Client:
    """What a client knows: its id and generation, and the requests it waits for."""

    instance_id: str | None
    member_id: str = ""
    generation: int = -1
    is_leader: bool = False
    is_synced: bool = False
    others: tuple[str, ...] = ()
    waiting: list[int] = field(default_factory=list)


class Invariant(Protocol):
    def check(self, story: "Story") -> None: ...


class Story:
    """A world, its clients, and everything that was said."""

    def __init__(self) -> None:
        self.world = World(holds_writes=True)
        self.clients = [
            Client(instance_id=f"i{i}" if i < STATIC_CLIENTS else None) for i in range(CLIENTS)
        ]
        self.incarnation = 0
        self.next_offset = 0
        self.nonce = 0
        self.floor = -1
        """The highest offset whose commit was acknowledged since offsets were last removed."""
        self.commits: dict[int, int] = {}
        self.joins: list[tuple[int, JoinAnswer]] = []
        """(incarnation of the group, answer) of every join that led to a generation."""
        self.syncs: list[tuple[int, int, SyncAnswer]] = []
        """(incarnation, generation, answer) of every assignment."""
        self.asked: dict[int, JoinGroup | SyncGroup] = {}
        self.mirror = OffsetsState()
        self.mirrored = 0
        """How many records of the log `mirror` has replayed."""
        self._seen_events = 0
        self._seen_answers: set[int] = set()

    # ---- actions --------------------------------------------------------------------------------

    def join(self, client: Client, choice: int) -> None:
        token = self.world.join(
            client.member_id,
            instance_id=client.instance_id,
            protocols=PROTOCOLS[choice % 2],
            rebalance_timeout_ms=20_000,
        )
        client.waiting.append(token)

    def sync(self, client: Client, choice: int) -> None:
        self.nonce += 1
        members = client.others if client.is_leader else ()
        assignments = {member: f"{self.nonce}:{member}".encode() for member in members}
        token = self.world.sync(
            client.member_id, client.generation, assignments, instance_id=client.instance_id
        )
        client.waiting.append(token)

    def proceed(self, client: Client, choice: int) -> None:
        """What a client that behaves does next."""
        if client.waiting:
            self.settle(client, 1)
            self.wait(client, 2)
        elif client.generation < 0:
            self.join(client, choice)
        elif not client.is_synced:
            client.is_synced = True
            self.sync(client, choice)
        else:
            self.commit(client, choice)
            self.heartbeat(client, choice)

    def heartbeat(self, client: Client, choice: int) -> None:
        code = self.world.heartbeat(client.member_id, client.generation, client.instance_id)
        if code in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self.forget(client, choice)
        elif code != Error.NONE:
            client.generation = -1

    def leave(self, client: Client, choice: int) -> None:
        self.world.leave(LeavingMember(client.member_id, client.instance_id))
        self.forget(client, choice)

    def forget(self, client: Client, choice: int) -> None:
        client.member_id, client.generation, client.is_leader = "", -1, False

    def commit(self, client: Client, choice: int) -> None:
        self.next_offset += 1
        token = self.world.commit(
            OffsetToCommit("flights", 0, self.next_offset),
            member_id=client.member_id,
            generation=client.generation,
            instance_id=client.instance_id,
        )
        self.commits[token] = self.next_offset

    def wait(self, client: Client, choice: int) -> None:
        self.world.advance((100, 1_000, 4_000, 12_000)[choice % 4])

    def settle(self, client: Client, choice: int) -> None:
        error = Error.NOT_ENOUGH_REPLICAS if choice % 5 == 0 else Error.NONE
        self.world.settle(error, count=min(choice % 3 + 1, len(self.world.writes)))

    def restart(self, client: Client, choice: int) -> None:
        self.observe()
        self.world.restart()
        self.observe()
        self.incarnation += 1

    def expire(self, client: Client, choice: int) -> None:
        self.world.perform(self.world.coordinator.expire(now_ms=self.world.now_ms))

    def delete(self, client: Client, choice: int) -> None:
        token = self.world.delete()
        self.world.settle()
        if self.world.deleted(token) == Error.NONE:
            self.observe()
            self.floor = -1

    # ---- what is seen ---------------------------------------------------------------------------

    def observe(self) -> None:
        """Take in what was asked and answered since the last time."""
        for event in self.world.events[self._seen_events :]:
            if isinstance(event, JoinGroup | SyncGroup):
                self.asked[event.token] = event
        self._seen_events = len(self.world.events)
        for token in sorted(set(self.world.answers) - self._seen_answers):
            self._seen_answers.add(token)
            self._take(token)
        if self.world.state == "none":
            self.incarnation += 1  # A group that was removed begins anew with generation 1.

    def _take(self, token: int) -> None:
        answer = self.world.answers[token]
        owner = next((one for one in self.clients if token in one.waiting), None)
        if owner is not None:
            owner.waiting.remove(token)
        if isinstance(answer, JoinAnswer):
            if answer.error_code == Error.NONE:
                self.joins.append((self.incarnation, answer))
            if owner is not None:
                self._take_join(owner, answer)
        elif isinstance(answer, SyncAnswer) and answer.error_code == Error.NONE:
            asked = self.asked[token]
            assert isinstance(asked, SyncGroup)
            self.syncs.append((self.incarnation, asked.generation, answer))
        elif isinstance(answer, CommitAnswer) and answer.partitions[0].error_code == Error.NONE:
            self.floor = max(self.floor, self.commits[token])

    def _take_join(self, client: Client, answer: JoinAnswer) -> None:
        if answer.error_code == Error.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error_code == Error.NONE:
            client.member_id, client.generation = answer.member_id, answer.generation
            client.is_leader = answer.leader == answer.member_id
            client.is_synced = False
            client.others = tuple(member.member_id for member in answer.members)
        elif answer.error_code in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self.forget(client, 0)


class OneLeadersListPerGeneration:
    """All who are told of a generation speak one protocol, and its leader's list has them all."""

    def check(self, story: Story) -> None:
        protocols: dict[tuple[int, int], str | None] = {}
        lists: dict[tuple[int, int], set[str]] = {}
        for incarnation, answer in story.joins:
            key = (incarnation, answer.generation)
            assert protocols.setdefault(key, answer.protocol_name) == answer.protocol_name
            if answer.members and not answer.skip_assignment:
                members = {member.member_id for member in answer.members}
                assert lists.setdefault(key, members) == members
        for incarnation, answer in story.joins:
            is_dynamic = answer.member_id.startswith("client-")
            told = lists.get((incarnation, answer.generation))
            assert told is None or not is_dynamic or answer.member_id in told


class GenerationsOnlyGrow:
    """Within one coordinator, generations are told in order, one for each join phase."""

    def check(self, story: Story) -> None:
        last: dict[int, int] = {}
        for incarnation, answer in story.joins:
            assert answer.generation >= last.get(incarnation, 0)
            last[incarnation] = answer.generation


class OneAssignmentPerGeneration:
    """Whoever gets work in a generation gets its own share of one and the same assignment."""

    def check(self, story: Story) -> None:
        nonces: dict[tuple[int, int], str] = {}
        for incarnation, generation, answer in story.syncs:
            if not answer.assignment:
                continue  # The leader's list did not have this member.
            nonce, _, _ = answer.assignment.decode().partition(":")
            assert nonces.setdefault((incarnation, generation), nonce) == nonce


class AcknowledgedOffsetsStay:
    """What a commit was acknowledged for is read back, or something later, until it is deleted."""

    def check(self, story: Story) -> None:
        found = story.world.coordinator.committed(GROUP).get(("flights", 0))
        assert (found.offset if found is not None else -1) >= story.floor


class TheLogTellsAll:
    """What is in force is what the log says: another coordinator could go on at any moment."""

    def check(self, story: Story) -> None:
        for key, value in story.world.log[story.mirrored :]:
            story.mirror.replay(key, value)
        story.mirrored = len(story.world.log)
        logged = story.mirror.groups.get(GROUP, LoadedGroup())
        assert story.world.coordinator.committed(GROUP) == logged.offsets
        described = story.world.coordinator.describe(GROUP)
        if described is not None and described.state == "Stable" and not story.world.writes:
            assert logged.metadata is not None
            assignments = {member.id: member.assignment for member in logged.metadata.members}
            assert {one.member_id: one.assignment for one in described.members} == assignments


class EveryRequestIsAnsweredOnce:
    """Twice fails in the world; and when all clients fall silent, nobody is left unanswered."""

    def check(self, story: Story) -> None:
        for client in story.clients:
            assert not set(client.waiting) & set(story.world.answers)

    def check_at_the_end(self, story: Story) -> None:
        for _ in range(40):
            story.world.settle()
            story.world.advance(20_000)
        assert set(range(1, story.world.next_token())) == set(story.world.answers)


ACTIONS = (
    Story.proceed,
    Story.proceed,
    Story.proceed,
    Story.proceed,
    Story.proceed,
    Story.join,
    Story.sync,
    Story.heartbeat,
    Story.commit,
    Story.wait,
    Story.settle,
    Story.leave,
    Story.forget,
    Story.restart,
    Story.expire,
    Story.delete,
)
Step = tuple[Callable[[Story, Client, int], None], int, int]
STEPS = st.tuples(st.sampled_from(ACTIONS), st.integers(0, CLIENTS - 1), st.integers(0, 19))


def run(steps: Iterable[Step]) -> Story:
    story = Story()
    answered = EveryRequestIsAnsweredOnce()
    invariants: tuple[Invariant, ...] = (
        OneLeadersListPerGeneration(),
        GenerationsOnlyGrow(),
        OneAssignmentPerGeneration(),
        AcknowledgedOffsetsStay(),
        TheLogTellsAll(),
        answered,
    )
    for action, number, choice in steps:
        action(story, story.clients[number], choice)
        story.observe()
        for invariant in invariants:
            invariant.check(story)
    answered.check_at_the_end(story)
    return story


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=60))
def test_any_schedule_keeps_what_a_group_promises(steps: list[Step]) -> None:
    run(steps)


@pytest.mark.parametrize("seed", range(60))
def test_long_schedules_keep_what_a_group_promises(seed: int) -> None:
    rng = random.Random(seed)
    run((rng.choice(ACTIONS), rng.randrange(CLIENTS), rng.randrange(20)) for _ in range(150))


def test_the_schedules_reach_every_part_of_the_protocol() -> None:
    rng = random.Random(7)
    stories = [
        run((rng.choice(ACTIONS), rng.randrange(CLIENTS), rng.randrange(20)) for _ in range(150))
        for _ in range(15)
    ]
    assert sum(len(story.joins) for story in stories) > 100
    assert sum(len(story.syncs) for story in stories) > 10
    assert sum(story.floor > 0 for story in stories) > 3


@pytest.mark.parametrize("count", [1, 2, 5])
def test_members_that_behave_become_stable(count: int) -> None:
    world = World()
    group = world.stable(count)
    assert len(group.ids) == count

"""Each promise by itself notices a mistake in the product: no other one is listening.

A mistake that breaks one promise mostly breaks several, and the first that speaks ends the run.

Source: design section 10."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from tests.simulation import mutants
from tests.simulation.mutants import MUTANTS

from strandline.model.ids import Index, Offset
from strandline.raft.group.quorums import Quorums
from strandline.replication.replica.replica import Replica
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.storage.log.reads import RecordSlices

Plant = Callable[[pytest.MonkeyPatch], None]

FALLBACK_SEEDS = range(1, 400)
"""As in `test_swarm`: a seed of its own is a short cut, and may go stale."""
SKIPPED_COUNT = 7


def show_what_is_committed_now(patch: pytest.MonkeyPatch) -> None:
    """The high watermark follows the commit, and goes back to it from what a quorum has written."""
    honest = Replica.update_marks

    def update_marks(self: Replica, commit: Index, visible: Index) -> None:
        honest(self, commit, visible)
        if self.log.start_index <= commit < self.log.last_index:
            self.high_watermark = self.log.offset_of(Index(commit + 1))

    patch.setattr(Replica, "update_marks", update_marks)


def skip_records(patch: pytest.MonkeyPatch) -> None:
    """A reader is given what comes a little later than what it asked for."""
    honest = Replica.read

    def read(self: Replica, offset: Offset, max_bytes: int) -> RecordSlices:
        later = Offset(offset + SKIPPED_COUNT)
        return honest(self, later if later < self.high_watermark else offset, max_bytes)

    patch.setattr(Replica, "read", read)


def forget_the_marks_of_followers(patch: pytest.MonkeyPatch) -> None:
    """Who follows never hears how far the log may be shown."""
    honest = Replica.update_marks

    def update_marks(self: Replica, commit: Index, visible: Index) -> None:
        if self.is_leader:
            honest(self, commit, visible)

    patch.setattr(Replica, "update_marks", update_marks)


def show_what_the_leader_alone_has_written(patch: pytest.MonkeyPatch) -> None:
    """What no quorum has written may be seen: the next leader has never had it."""
    patch.setattr(Quorums, "written", lambda self, limit: limit)


@dataclass(frozen=True)
class Case:
    """`promise` notices `plant` in the run of `seed`: a scenario, and the faults, of the mutant
    `like`, which is `plant` itself where nothing is said."""

    promise: str
    plant: Plant
    seed: int
    like: Plant | None = None

    def scenario(self, seed: int) -> Scenario | None:
        return next(one for one in MUTANTS if one.plant is (self.like or self.plant)).scenario(seed)


CASES: Sequence[Case] = (
    Case("SingleLeaderPerEpoch", mutants.answer_before_the_state_is_durable, 423),
    Case("LogMatching", mutants.let_a_lost_disk_vote, 149),
    Case("LeaderCompleteness", mutants.let_a_lost_disk_vote, 439),
    Case("NoAcknowledgedRecordLost", mutants.acknowledge_before_the_quorum, 11),
    Case("LeaderAcknowledgedKept", mutants.mix_up_the_answers, 6),
    Case("OffsetsDense", skip_records, 1, mutants.acknowledge_before_the_quorum),
    Case("HighWatermarkMonotonic", show_what_is_committed_now, 1, mutants.read_without_a_lease),
    Case(
        "HighWatermarkMonotonic",
        show_what_the_leader_alone_has_written,
        10,
        mutants.show_what_is_only_appended,
    ),
    Case("NoReadOfWhatDisappeared", mutants.let_a_lost_disk_vote, 333),
    Case("CommittedPrefixEqual", mutants.let_a_lost_disk_vote, 132),
    Case("NoDuplicateFromIdempotentProducer", mutants.forget_what_producers_wrote, 3),
    Case("GroupOffsetsMonotonic", mutants.commit_offsets_at_once, 63),
    Case("EachByteOncePerRegion", mutants.send_to_each_by_itself, 1),
    Case("Progress", mutants.forget_the_names_of_files, 10),
    Case("Convergence", forget_the_marks_of_followers, 1, mutants.acknowledge_before_the_quorum),
)


def only(name: str, patch: pytest.MonkeyPatch) -> None:
    """Nothing is judged by any other class."""
    honest = Checker.__init__

    def init(self: Checker, **options: object) -> None:
        honest(self, **options)  # type: ignore[arg-type]
        self._invariants = [one for one in self._invariants if type(one).__name__ == name]
        self._sent.on_entries_sent = lambda fact: None  # type: ignore[method-assign]
        if name != "EachByteOncePerRegion":
            self._crossed.on_entries_passed = lambda fact: None  # type: ignore[method-assign]

    patch.setattr(Checker, "__init__", init)


@pytest.mark.simulation
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.promise)
def test_a_promise_notices_a_mistake_by_itself(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    only(case.promise, monkeypatch)
    case.plant(monkeypatch)
    for seed in (case.seed, *FALLBACK_SEEDS):
        scenario = case.scenario(seed)
        violation = None if scenario is None else run_scenario(scenario).violation
        if violation is not None and violation.startswith(f"{case.promise}:"):
            return
    pytest.fail("no seed finds it")


@pytest.mark.simulation
@pytest.mark.parametrize("case", [one for one in CASES if one.like], ids=lambda case: case.promise)
def test_without_the_mistake_the_same_run_keeps_every_promise(case: Case) -> None:
    scenario = case.scenario(case.seed)
    assert scenario is not None
    assert run_scenario(scenario).violation is None

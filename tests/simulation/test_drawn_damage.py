"""What seeds draw of tombstones, rot and the scrub finds mistakes that are planted there.

Source: design section 4 and 10; reliability reference 3; `simulation/swarm/variations.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import pytest

from strandline.base.disk import Disk
from strandline.base.errors import StorageError
from strandline.model.ids import Offset
from strandline.replication.repair.log_repair import LogRepair
from strandline.replication.replica.replica import Replica
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.variations import draw
from strandline.storage import state_journal
from strandline.storage.layout import SegmentSummary, read_whole
from strandline.storage.log import sealing
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.scrubbing import Scrub

SEEDS = range(1, 2_000)
RUNS_MAX = 40
"""So many seeds of a class are enough to find a mistake in what it is about."""

Plant = Callable[[pytest.MonkeyPatch], None]


def let_tombstones_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """A tombstone goes after `delete.retention.ms`, whoever has it."""

    def outlived_offset(replica: Replica) -> Offset:
        return replica.log.end_offset

    patch.setattr(Replica, "outlived_offset", property(outlived_offset))


def scrub_nothing(patch: pytest.MonkeyPatch) -> None:
    """The scrub goes round and looks at nothing."""
    patch.setattr(Scrub, "step", lambda self, bytes_max: 0)


def report_nothing(patch: pytest.MonkeyPatch) -> None:
    """The scrub looks, and keeps what it finds for itself."""
    patch.setattr(LogRepair, "_take_gaps", lambda self, replica, scrub: scrub.gaps.clear())


def trust_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What was written or looked at once is never looked at again."""
    patch.setattr(Segment, "trust_from_now", lambda self, trust: None)


def refuse_rotten_summaries(patch: pytest.MonkeyPatch) -> None:
    """A log whose summary has rotted stays closed, though its segment tells all of it."""
    honest = sealing.read_checked

    def read_checked(disk: Disk, path: str, kind: type[object]) -> object:
        found = honest(disk, path, kind)
        if found is None and kind is SegmentSummary and read_whole(disk, path):
            raise StorageError(path, 0, expected="a summary", found="damaged bytes")
        return found

    patch.setattr(sealing, "read_checked", read_checked)


def believe_a_rotten_journal(patch: pytest.MonkeyPatch) -> None:
    """What follows a damaged state in the journal is taken for a torn tail."""
    honest = state_journal.read_states

    def read_states(path: str, data: bytes) -> object:
        position = 0
        while (found := state_journal._decode(data, position)) is not None:
            position = found[1]
        return honest(path, data[:position])

    patch.setattr(state_journal, "read_states", read_states)


@dataclass(frozen=True)
class Planted:
    """A mistake, what a seed has to draw that it may show, the first such seed that finds it (a
    short cut, that may go stale), and by which promise."""

    plant: Plant
    holds: Callable[[Scenario], bool]
    seed: int
    promise: str

    def scenarios(self) -> Iterator[Scenario]:
        """The short cut, then all others."""
        yield from filter(self.holds, (draw(self.seed),))
        yield from islice(filter(self.holds, map(draw, SEEDS)), RUNS_MAX)


def draws(kind: str) -> Callable[[Scenario], bool]:
    return lambda scenario: kind in scenario.fault_weights


PLANTED = (
    Planted(
        let_tombstones_go_at_once,
        lambda scenario: scenario.tombstone_ratio > 0,
        95,
        "DeletedKeysStayDeleted",
    ),
    Planted(scrub_nothing, draws("open-rot"), 33, "DamageMended"),
    Planted(report_nothing, draws("open-rot"), 92, "DamageMended"),
    Planted(trust_for_ever, draws("open-rot"), 36, "NoDamageServed"),
    Planted(refuse_rotten_summaries, draws("index-rot"), 204, "Progress"),
    Planted(believe_a_rotten_journal, draws("journal-rot"), 87, "NoDamageServed"),
)


@pytest.mark.simulation
@pytest.mark.parametrize("planted", PLANTED, ids=lambda one: one.plant.__name__)
def test_a_planted_mistake_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    violations = (run_scenario(one).violation or "" for one in planted.scenarios())
    assert next(filter(None, violations), "").startswith(planted.promise + ":")

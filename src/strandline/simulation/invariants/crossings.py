"""Whether what is appended crosses to each other region once.

Why:    a second copy between two regions costs as much as the first one, and nobody notices it.
How:    only where nothing is wrong: `Settling` watches a history without faults, and says when all
        replicas of a group are in step with their leader. From then on, and for as long as that one
        leads, no broker of another region may send a broker of this one an entry that somebody has
        sent there before: whoever sends it, and however it got there.
            All are in step once each has acknowledged what was appended when all were.
Owns:   how far each region is.
Source: design section 1 ("each byte crosses to a remote region once"), 5 and 10; decision 0034."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.simulation.invariants.facts import EntriesPassed, RegionsInStep, Subject
from strandline.simulation.invariants.invariants import Invariant
from strandline.simulation.world.scheduler import US_PER_MS

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica
    from strandline.simulation.scenarios.scenario import Scenario
    from strandline.simulation.world.world import World

LOOK_MS = 100
WINDOW_BYTES_MIN = 1024 * 1024
WINDOW_COUNT_MIN = 64
FLUSH_MAX_US = 5_000


class EachByteOncePerRegion(Invariant):
    """See the module. `regions`: where each broker lives."""

    def __init__(self, regions: Mapping[BrokerId, str]) -> None:
        self._regions = regions
        self._settled: dict[GroupId, RegionsInStep] = {}
        self._ends: dict[tuple[GroupId, str], Index] = {}
        """{(group, region): where the next entries that cross to it begin, at least}."""

    def on_regions_in_step(self, fact: RegionsInStep) -> None:
        """From now on this group is judged."""
        self._settled[fact.group] = fact
        for region in self._regions.values():
            self._ends[fact.group, region] = fact.first_index

    def on_entries_passed(self, fact: EntriesPassed) -> None:
        """Between regions only what has not come to the other one."""
        settled = self._settled.get(fact.group)
        region = self._regions.get(fact.receiver, "")
        if settled is None or self._regions.get(fact.sender) == region:
            return
        if fact.epoch != settled.epoch or fact.last_index < settled.first_index:
            return
        end = self._ends[fact.group, region]
        first_index = max(fact.first_index, settled.first_index)
        if first_index < end:
            raise self.broken(
                f"group {fact.group}: broker {fact.sender} sends entries {first_index} to "
                f"{fact.last_index} of epoch {fact.epoch} to broker {fact.receiver} in region "
                f"{region}, which has been sent all below {end}",
                Subject(fact.group, index=first_index),
            )
        self._ends[fact.group, region] = Index(fact.last_index + 1)


class Settling:
    """See the module."""

    def __init__(self, world: "World") -> None:
        self._world = world
        # {group: (epoch, what was appended when all were in step first)}
        self._from: dict[GroupId, tuple[Epoch, Index]] = {}
        self._told: dict[GroupId, Epoch] = {}

    def watch(self) -> None:
        """Look at all groups now and then."""
        for replica in self._world.leading_replicas():
            if replica.is_serving and self._told.get(replica.group) != replica.epoch:
                self._look_at(replica)
        self._world.scheduler.after(LOOK_MS * US_PER_MS, self.watch)

    def _look_at(self, leader: "Replica") -> None:
        group = leader.group
        if not all_in_step(leader):
            self._from.pop(group, None)
            return
        epoch, index = self._from.setdefault(group, (leader.epoch, leader.log.last_index))
        if epoch != leader.epoch:
            del self._from[group]
        elif all(one.match_flushed > index for one in leader.raft.progress.values()):
            self._told[group] = epoch
            first_index = Index(leader.log.last_index + 1)
            self._world.checker.regions_in_step(RegionsInStep(group, epoch, first_index))


def all_in_step(leader: "Replica") -> bool:
    """Whether every member keeps up, and may be served by others than its leader."""
    leading = leader.leading
    progress = leader.raft.progress
    return leading is not None and all(
        not one.is_probing
        and not one.is_recovering
        and leading.is_in_step(peer)
        and not leading.is_backing_off(peer)
        for peer, one in progress.items()
    )


def is_undisturbed(scenario: "Scenario") -> bool:
    """Whether nothing happens in which a second way is right: no fault, no message that has to be
    sent again, nobody who moves, and room for what is under way. Labels have to be known."""
    settings = scenario.settings
    has_labels = not scenario.has_brokers or scenario.lost_after_ms > 0
    moves = scenario.changes or scenario.move_interval_ms
    is_quiet = not scenario.plan_faults() and not scenario.loss_ratio and not moves
    has_room = (
        min(settings.inflight_bytes_max, settings.tail_bytes_max) >= WINDOW_BYTES_MIN
        and settings.inflight_count_max >= WINDOW_COUNT_MIN
        and scenario.flush_us[1] <= FLUSH_MAX_US
    )
    return has_labels and is_quiet and has_room and settings.relays

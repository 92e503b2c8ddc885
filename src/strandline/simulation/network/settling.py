"""Watches a history without faults for the moment when every replica of a group is in step.

Why:    a second way between two regions is right while a replica catches up, and a waste from
        then on (`invariants.crossings`).
How:    looks at the leaders now and then. All are in step once each has acknowledged what was
        appended when all were.
Owns:   since when each group has been in step.
Source: design sections 1 and 5; decision 0034."""

from strandline.model.ids import Epoch, GroupId, Index
from strandline.replication.replica.replica import Replica
from strandline.simulation.invariants.facts import RegionsInStep
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS

LOOK_MS = 100
WINDOW_BYTES_MIN = 1024 * 1024
WINDOW_COUNT_MIN = 64
FLUSH_MAX_US = 5_000


class Settling:
    """See the module."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        # {group: (epoch, what was appended when all were in step first)}
        self._from: dict[GroupId, tuple[Epoch, Index]] = {}
        self._told: dict[GroupId, Epoch] = {}

    def watch(self) -> None:
        """Look at all groups now and then."""
        for replica in self._cluster.leading_replicas():
            if replica.is_serving and self._told.get(replica.group) != replica.epoch:
                self._look_at(replica)
        self._cluster.scheduler.after(LOOK_MS * US_PER_MS, self.watch)

    def _look_at(self, leader: Replica) -> None:
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
            self._cluster.checker.regions_in_step(RegionsInStep(group, epoch, first_index))


def all_in_step(leader: Replica) -> bool:
    """Whether every member keeps up, and may be served by others than its leader."""
    leadership = leader.leadership
    progress = leader.raft.progress
    return leadership is not None and all(
        not one.is_probing
        and not one.is_recovering
        and leadership.followers.is_in_step(peer)
        and not leadership.followers.is_backing_off(peer)
        for peer, one in progress.items()
    )


def is_undisturbed(scenario: Scenario) -> bool:
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

"""Opens, adjusts and removes Raft groups on this broker, as the controller's committed state asks.

Why:    topics come, change and go in the controller's log; each broker makes its own share true.
How:    After every step of replay this broker compares its groups with the state, and then
            makes the other brokers known to replication (`peers`)
            opens groups that belong here (`log_opener`), and removes groups that do not
            gives each replica the present settings of its topic (`group_settings`)
            gives each group that it leads the members that the state asks for (`moving`)
        A record of a single partition causes a look at that partition alone.
            A broker opens groups only once it has replayed its own registration. By then it knows
        what was decided before: a replica whose disk is gone, or that was declared lost, must not
        vote as if it remembered (decision 0027). Logs that belong to no group are removed then.
Owns:   the decision to open, close or remove a group here, and the groups still to be looked at.
        It constructs the parts named above, `controller_log` and `rejoining`.
Source: design sections 3 and 6; reliability reference 1b (a wiped follower that votes)."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.groups.controller_log import ControllerLog
from strandline.broker.groups.group_settings import (
    GroupSettings,
    TopicSettings,
    bind,
    controller_spec,
    directory_of,
)
from strandline.broker.groups.log_opener import LogOpener
from strandline.broker.groups.moving import Moving
from strandline.broker.groups.peers import Peers
from strandline.broker.groups.rejoining import Rejoining
from strandline.broker.leadership.leader_ranks import LeaderRanks
from strandline.config.broker import BrokerConfig
from strandline.controller.records import (
    GrantBegun,
    LeaderAppointed,
    ProducerIdsAllocated,
    ReassignmentSet,
    Record,
    VotersGranted,
    VotersStable,
)
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId, grant_of
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.opening import FLUSHED_EACH_MAX, OPENED_AT_ONCE_MAX
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

RECONCILE_SHARE_MS = 20
RETRY_MS = 10_000
"""After an unexpected error: the next change of the state may be far away."""
OF_ONE_PARTITION = ReassignmentSet | VotersGranted | VotersStable | GrantBegun | LeaderAppointed
"""Records that change one partition, and nothing else."""

_log = logging.getLogger("strandline.broker")


class Hosting:
    """See the module. `incarnation`: the id with which this start of the broker registers."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        disk: Disk,
        replication: Replication,
        controller: ControllerHost,
        topic_configs: TopicConfigs,
        leader_ranks: LeaderRanks,
        incarnation: str,
        reconcile_soon: Callable[[], None],
    ) -> None:
        self._config = config
        self._self_id: BrokerId = config.broker_id
        self._clock = clock
        self._disk = disk
        self._replication = replication
        self._controller = controller
        self._topic_configs = topic_configs
        self._incarnation = incarnation
        self._reconcile_soon = reconcile_soon
        self._settings = GroupSettings(
            config=config,
            controller=controller,
            topic_configs=topic_configs,
            leader_ranks=leader_ranks,
        )
        self._peers = Peers(
            config=config, clock=clock, replication=replication, controller=controller
        )
        self.moving = Moving(
            clock=clock,
            replication=replication,
            controller=controller,
            leader_ranks=leader_ranks,
            adjust=self.adjust,
        )
        self.rejoining = Rejoining(
            clock=clock, replication=replication, controller=controller, incarnation=incarnation
        )
        # Whether all groups are due for a look; the rest of that work; groups changed meanwhile.
        self._is_all_due = True
        self._is_retry_due = False
        self._work: Iterator[None] = iter(())
        self._changed: dict[GroupId, None] = {}
        # Changed groups that should be open and are not.
        self._absent: dict[GroupId, None] = {}
        self._logs_directory = directory = f"{config.broker.data_directory}/logs"
        self._opener = LogOpener(
            clock=clock,
            disk=disk,
            replication=replication,
            directory=directory,
            retry=self._look_again,
        )
        self.controller_log = ControllerLog(
            clock=clock, disk=disk, replication=replication, directory=directory
        )
        controller.reporting.closed = self._closed
        self._replication.fencing.closed = self._closed
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)
        replication.on_stale_log.append(self._begin_anew)

    def controller_spec(self) -> GroupSpec:
        """How to open the controller's group; makes its voters known to replication first."""
        self._peers.add_seeds()
        return controller_spec(self._config, self._controller.snapshots)

    @property
    def is_registered(self) -> bool:
        """Whether this broker has replayed the registration of its present start."""
        own = self._controller.cluster.brokers.get(self._self_id)
        return own is not None and own.incarnation == self._incarnation

    def reconcile(self) -> bool:
        """Work for `RECONCILE_SHARE_MS` on the groups that differ from the controller's state.

        Returns False while work is left: call again in a later pass of the loop. Opening a log
        takes milliseconds, and heartbeats must not wait for thousands of logs."""
        end_ms = self._clock.monotonic_ms() + RECONCILE_SHARE_MS
        try:
            if self._is_all_due:
                self._is_all_due = False
                self._changed.clear()
                self._absent.clear()
                self._opener.finish()
                self._work = self._steps()
            steps = chain(self._work, self._steps_of_changed())
            return all(self._clock.monotonic_ms() < end_ms for _ in steps)
        except Exception:
            self._is_all_due = True  # The next change of the state tries again, or time does.
            if not self._is_retry_due:
                self._is_retry_due = True
                self._clock.call_later(RETRY_MS, self._retry)
            raise

    def _on_applied(self, record: Record) -> None:
        """Mark only the groups that a record can change: if thousands of partitions lose a voter,
        there are thousands of records, and a look at all groups for each would be too much."""
        if isinstance(record, OF_ONE_PARTITION):
            self._changed[record.group] = None
        elif not isinstance(record, ProducerIdsAllocated):
            self._is_all_due = True

    def _on_adopted(self, _: dict[str, UUID]) -> None:
        self._is_all_due = True

    def _steps(self) -> Iterator[None]:
        """The work for all groups, in steps. It starts again after a record that may change all."""
        cluster = self._controller.cluster
        self._peers.refresh()
        self._topic_configs.forget_absent(cluster)
        for replica in list(self._replication.replicas.values()):
            if self._close_absent(replica):
                yield
        here = {group for group, one in cluster.groups.items() if self._self_id in one.hosts}
        self._opener.keep(here)
        if not self.is_registered:
            return
        absent: list[GroupSpec] = []
        for settings in self._settings.of_each():
            for partition in settings.topic.partitions:
                if self._self_id in partition.hosts:
                    absent += self._take_up(partition, settings)
                    yield
        yield from self._opener.open_all(absent, has_changed=self._changed.__contains__)
        self.adjust_led_groups()

    def _steps_of_changed(self) -> Iterator[None]:
        """The work for changed partitions, in steps. `_changed` and `_absent` hold the remaining
        work, because this may start again after any step."""
        opening = self._replication.opening
        while self._changed or self._absent or opening.specs:
            are_enough = opening.specs or len(self._absent) >= OPENED_AT_ONCE_MAX
            if self._changed and not (self._absent and are_enough):
                group = next(iter(self._changed))
                del self._changed[group]
                self._look_at_one(group)
            else:
                self._open_absent()
            yield

    def _look_at_one(self, group: GroupId) -> None:
        """Apply the changes of one partition. A group to be opened waits in `_absent`, so that many
        are opened together."""
        self._opener.finish()
        cluster = self._controller.cluster
        replica = self._replication.replicas.get(group)
        if replica is not None:
            self._close_absent(replica)
        partition = cluster.groups.get(group)
        if partition is None or not self.is_registered:
            return
        if self._self_id in partition.hosts:
            if self._take_up(partition, self._settings.of(partition)):
                self._absent[group] = None
        else:
            self._opener.drop(group)
        replica = self._replication.replicas.get(group)
        if replica is not None:
            self.adjust(replica)

    def _open_absent(self) -> None:
        """Open the next group of `_absent` as the present state asks; finish if there is none."""
        opening = self._replication.opening
        if not self._absent or opening.is_full:
            self._opener.finish()
            return
        are_many = bool(opening.specs) or len(self._absent) > FLUSHED_EACH_MAX
        group = next(iter(self._absent))
        del self._absent[group]
        partition = self._controller.cluster.groups.get(group)
        if partition is None or self._self_id not in partition.hosts or not self.is_registered:
            return
        for spec in self._take_up(partition, self._settings.of(partition)):
            self._opener.open(spec, is_one_of_many=are_many)

    def _take_up(self, partition: Partition, settings: TopicSettings) -> list[GroupSpec]:
        """Adjust an open replica to the state. If it is not open, return the spec to open it."""
        if self._forget_declared(settings.topic, partition):
            return []
        replica = self._replication.replicas.get(partition.group)
        if replica is None:
            return [self._settings.spec(partition, settings)]
        election_priority = self._settings.election_priority(partition, settings)
        if replica.election_priority != election_priority:
            replica.election_priority = election_priority
            self._replication.liveness.on_election_priority(replica)
        replica.place(partition)
        bind(replica, partition, settings.config)
        if replica.log.config != settings.log:
            replica.configure(settings.log)
        return []

    def _forget_declared(self, topic: Topic, partition: Partition) -> bool:
        """Remove the replica here if it was declared lost. Returns whether it was."""
        lost_in = partition.lost_in(self._self_id)
        removal = self._replication.removal
        if not removal.is_due(partition.group, lost_in):
            return False
        if partition.group not in removal:
            _log.warning(
                "%s: its replica here was declared lost by grant %d: removing its log",
                partition.name,
                lost_in,
            )
            directory = f"{self._logs_directory}/{directory_of(topic, partition)}"
            group = partition.group
            look_again = partial(self._look_at, group)
            removal.remove(group, directory, look_again, lost_in=lost_in)
        return True

    def adjust_led_groups(self) -> None:
        """Give the groups led here the members and the write quorum that the state asks for."""
        for replica in self._replication.replicas.values():
            self.adjust(replica)

    def adjust(self, replica: Replica) -> None:
        """Do so for one group; nothing if another broker leads it."""
        if not replica.is_leader:
            return
        if replica.group == CONTROLLER_GROUP:
            self._peers.adjust_controller_group(replica)
            return
        partition = self._controller.cluster.groups.get(replica.group)
        if partition is not None:
            config = self._settings.config_of(partition)
            bind(replica, partition, config)
            self.moving.adjust(replica, partition, config)

    def remove_strays(self) -> None:
        """Remove the logs of groups that were deleted, or moved, while this broker was away.

        Call it only after this broker has replayed its latest registration. Raises OSError if the
        logs cannot be listed. A log that cannot be removed stays."""
        root = self._logs_directory
        cluster = self._controller.cluster
        for name in self._disk.list_directory(root):
            number = name.rpartition(".")[2]
            if not number.isdigit() or int(number) == CONTROLLER_GROUP:
                continue
            group = GroupId(int(number))
            partition = cluster.groups.get(group)
            if partition is None:
                _log.info("removing %s: its partition was deleted", name)
                try:
                    self._disk.remove_tree(f"{root}/{name}")
                except OSError as error:
                    _log.error("%s cannot be removed: %s", name, error)
            elif self._self_id not in partition.hosts:
                _log.info("removing %s: its partition has moved to other brokers", name)
                look_again = partial(self._look_at, group)
                self._replication.removal.remove(group, f"{root}/{name}", look_again)

    # ---- each group ----------------------------------------------------------------------------

    def _closed(self) -> list[GroupId]:
        return self._opener.closed

    def _look_at(self, group: GroupId) -> None:
        self._changed[group] = None
        self._reconcile_soon()

    def _look_again(self) -> None:
        self._is_all_due = True
        self._reconcile_soon()

    def _retry(self) -> None:
        self._is_retry_due = False
        self._reconcile_soon()

    def _close_absent(self, replica: Replica) -> bool:
        """Remove a replica that does not belong here. Returns whether it was removed."""
        group = replica.group
        partition = self._controller.cluster.groups.get(group)
        if group == CONTROLLER_GROUP:
            return False
        if partition is None:
            _log.info("%s: removing its replica from this broker", replica.name)
            self._replication.close_group(group, remove=True)
            return True
        if self._self_id in partition.hosts or _is_behind(partition, replica):
            return False
        _log.info("%s: has moved from this broker: removing its replica", replica.name)
        look_again = partial(self._look_at, group)
        self._replication.removal.remove(group, replica.log.directory, look_again)
        return True

    def _begin_anew(self, replica: Replica) -> None:
        """Start a replica with a stale log from nothing (`raft.follower.stale_log_reset`)."""
        group = replica.group
        if self._replication.replicas.get(group) is replica:
            self._replication.removal.reset_log(
                replica,
                partial(self._look_at, group),
                rejoined=self._controller.state.rejoined(self._self_id, group),
            )


def _is_behind(partition: Partition, replica: Replica) -> bool:
    """Whether the state replayed here is older than the replica's log or its fence.

    Then the replica stays: the group may have removed this broker and added it again later, and
    removing the replica would lose its fence."""
    grant = grant_of(replica.epoch)
    return grant > partition.grant or replica.configuration.version > partition.last_version

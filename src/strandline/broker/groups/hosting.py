"""Which Raft groups live on this broker: the controller's, and a replica of each partition that the
committed state puts here.

Why:    topics come, change and go in the controller's log; each broker makes its own share true.
How:    after every step of replay, what is there is compared with what ought to be: peers are made
        known, groups opened, closed and removed, logs given the topic's present configuration, and
        a leader gives its group the members that are wanted (`moving`). After records of single
        partitions, only these are looked at. Groups are opened only once
        this very start of the broker is replayed: what was decided before it is known then, that
        a disk is gone, say, or that a replica was given up for lost, which must not vote as if it
        remembered, or as if nothing had happened (decision 0027). What lies in `logs` and belongs
        to no group is removed then, too.
Owns:   the decision to open, close or remove a group here.
Source: design sections 3 and 6; reliability reference 1b (a wiped follower that votes)."""

import logging
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain

from strandline.base.clock import Clock
from strandline.base.disk import Disk, is_full
from strandline.base.errors import StorageError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.groups.controller_log import ControllerLog
from strandline.broker.groups.damaged_logs import DamagedLogs
from strandline.broker.groups.moving import Moving
from strandline.broker.groups.rejoining import Rejoining
from strandline.broker.leadership.draining import first_to_lead
from strandline.broker.leadership.leader_ranks import LeaderRanks, Preference
from strandline.config.broker import BrokerConfig
from strandline.config.cluster import ClusterConfig
from strandline.config.topic import TopicConfig
from strandline.controller.decision import maintained_of
from strandline.controller.records import (
    GrantBegun,
    GroupSeated,
    ProducerIdsAllocated,
    ReassignmentSet,
    Record,
    VotersGranted,
    VotersStable,
)
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId, grant_of
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.host.opening import FLUSHED_EACH_MAX, OPENED_AT_ONCE_MAX
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.storage.config import LogConfig

CONTROLLER_NAME = "@controller"
TOPIC_CHARACTERS_MAX = 200
"""How much of a topic's name goes into its directories' names; the group's id makes them unique."""

RECONCILE_SHARE_MS = 20
FULL_RETRY_MS = 10_000
RETRY_MS = 10_000
"""After something that nobody thought of: nothing else may change for long."""
CHANGE_RETRY_MS = 200
FLUSH_MS_MAX = 60_000
"""What is never flushed never commits, and keeps compaction and retention waiting."""

OF_ONE_PARTITION = ReassignmentSet | VotersGranted | VotersStable | GrantBegun | GroupSeated
"""Records that change one partition, and nothing else."""

_log = logging.getLogger("strandline.broker")


@dataclass(frozen=True, slots=True)
class _Terms:
    """What holds for all partitions of a topic. `asked`: what its policy prefers."""

    topic: Topic
    config: TopicConfig
    log: LogConfig
    asked: Preference
    maintained: Collection[BrokerId]


class Hosting:
    """See the module. `incarnation` is what this start of the broker registers with."""

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
        self._leader_ranks = leader_ranks
        self._incarnation = incarnation
        self._reconcile_soon = reconcile_soon
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
        # Whether all is to be looked at; what is left of that; and the groups that changed since.
        self._is_all_due = True
        self._is_retry_due = False
        self._work: Iterator[None] = iter(())
        self._changed: dict[GroupId, None] = {}
        # Those of the latter that are not open, and should be.
        self._absent: dict[GroupId, None] = {}
        # Groups whose log the disk could not open: they stay closed until the broker starts anew.
        self._broken: set[GroupId] = set()
        directory = f"{config.broker.data_directory}/logs"
        self._damaged = DamagedLogs(
            clock=clock,
            disk=disk,
            replication=replication,
            directory=directory,
            reopen=self._look_again,
        )
        self.controller_log = ControllerLog(
            clock=clock, disk=disk, replication=replication, directory=directory
        )
        # Groups whose log found no space to begin in: they are tried again.
        self._waiting: set[GroupId] = set()
        # Whether who follows the controller's group is to be looked at again.
        self._is_controller_due = False
        controller.reporting.closed = self._closed
        self._replication.fencing.closed = self._closed
        controller.on_applied.append(self._on_applied)
        replication.on_outdated.append(self._begin_anew)

    def controller_spec(self) -> GroupSpec:
        """Group 0 as it is to be opened here; its voters are made known."""
        for seed in self._config.seeds:
            self._replication.set_peer(seed.id, seed.address.host, seed.address.port)
        voters = tuple(sorted(seed.id for seed in self._config.seeds))
        observers = () if self._self_id in voters else (self._self_id,)
        return GroupSpec(
            group=CONTROLLER_GROUP,
            name=f"{CONTROLLER_NAME}-0",
            directory=f"{CONTROLLER_NAME}.{CONTROLLER_GROUP}",
            configuration=Configuration(voters=voters, observers=observers),
            log=LogConfig(
                retention_ms=-1,
                delete=False,
                trust_ms=self._config.storage.trust_ms,
                preallocate=self._config.storage.preallocate,
            ),
            election_priority=ElectionPriority(voters[0]),
            asks_voters=True,
        )

    @property
    def is_registered(self) -> bool:
        """Whether the state as replayed here knows this start of this broker."""
        own = self._controller.cluster.brokers.get(self._self_id)
        return own is not None and own.incarnation == self._incarnation

    def reconcile(self) -> bool:
        """Go on making what is here what the state asks for, for a share of a pass of the loop.

        False while there is more to do: call again in a later pass. Opening a log takes
        milliseconds, and heartbeats must not wait for thousands of them."""
        end_ms = self._clock.monotonic_ms() + RECONCILE_SHARE_MS
        try:
            if self._is_all_due:
                self._is_all_due = False
                self._changed.clear()
                self._absent.clear()
                self._finish_opening()
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
        """Only what a record can change is looked at: where thousands of partitions lose a voter,
        there are thousands of records, and as many partitions."""
        if isinstance(record, OF_ONE_PARTITION):
            self._changed[record.group] = None
        elif not isinstance(record, ProducerIdsAllocated):
            self._is_all_due = True

    def _steps(self) -> Iterator[None]:
        """The work for the whole state, in steps; begun anew when more than partitions change."""
        cluster = self._controller.cluster
        self._know_peers()
        self._place_peers()
        self._topic_configs.forget_absent(cluster)
        for replica in list(self._replication.replicas.values()):
            if self._close_absent(replica):
                yield
        here = {group for group, one in cluster.groups.items() if self._self_id in one.hosts}
        self._broken &= here
        self._damaged.keep(here)
        self._waiting &= here
        if not self.is_registered:
            return
        values = ClusterConfig.from_values(cluster.cluster_configs)
        maintained = maintained_of(cluster)
        absent: list[GroupSpec] = []
        for topic in cluster.topics.values():
            terms = self._terms(topic, values, maintained)
            for partition in topic.partitions:
                if self._self_id in partition.hosts:
                    absent += self._take_up(partition, terms)
                    yield
        yield from self._open(absent)
        self.adjust_led_groups()

    def _steps_of_changed(self) -> Iterator[None]:
        """The same for what has changed of single partitions. Between two steps it may be begun
        anew, so what is left is in no variable here."""
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
        """What has changed of one partition; where it is to be opened, it waits for others."""
        self._finish_opening()
        cluster = self._controller.cluster
        replica = self._replication.replicas.get(group)
        if replica is not None:
            self._close_absent(replica)
        partition = cluster.groups.get(group)
        if partition is None or not self.is_registered:
            return
        if self._self_id in partition.hosts:
            if self._take_up(partition, self._terms_now(partition)):
                self._absent[group] = None
        else:
            self._broken.discard(group)
            self._waiting.discard(group)
            self._damaged.drop(group)
        replica = self._replication.replicas.get(group)
        if replica is not None:
            self.adjust(replica)

    def _open_absent(self) -> None:
        """Open the next one of those that wait for it, by what is known by now; or finish."""
        opening = self._replication.opening
        if not self._absent or opening.is_full:
            self._finish_opening()
            return
        are_many = bool(opening.specs) or len(self._absent) > FLUSHED_EACH_MAX
        group = next(iter(self._absent))
        del self._absent[group]
        partition = self._controller.cluster.groups.get(group)
        if partition is None or self._self_id not in partition.hosts or not self.is_registered:
            return
        for spec in self._take_up(partition, self._terms_now(partition)):
            if not self._is_closed(group):
                open_it = opening.add if are_many else opening.open_one
                self._attempt(partial(open_it, spec), [spec])

    def _terms_now(self, partition: Partition) -> _Terms:
        cluster = self._controller.cluster
        values = ClusterConfig.from_values(cluster.cluster_configs)
        return self._terms(cluster.topics[partition.topic], values, maintained_of(cluster))

    def _terms(
        self, topic: Topic, values: ClusterConfig, maintained: Collection[BrokerId]
    ) -> _Terms:
        cluster = self._controller.cluster
        config = self._topic_configs.of(topic, cluster)
        log = self._log_config(topic, config, values.producer_id_expiration_ms)
        return _Terms(topic, config, log, self._leader_ranks.of(topic, cluster), maintained)

    def _take_up(self, partition: Partition, terms: _Terms) -> list[GroupSpec]:
        """Let the replica here be as the state asks; how to open it, where it is not open."""
        if self._forget_declared(terms.topic, partition):
            return []
        replica = self._replication.replicas.get(partition.group)
        ranks = self._leader_ranks.ranks(terms.asked, partition)
        election_priority = ElectionPriority(first_to_lead(partition, terms.maintained), ranks)
        if replica is None:
            return [self._spec(terms, partition, election_priority)]
        self._succeed(replica, election_priority)
        replica.place(partition)
        _bind(replica, partition, terms.config)
        if replica.log.config != terms.log:
            replica.configure(terms.log)
        return []

    def _forget_declared(self, topic: Topic, partition: Partition) -> bool:
        """Let go of what is here where it was declared lost; whether that is so."""
        lost_in = partition.lost_in(self._self_id)
        forgetting = self._replication.forgetting
        if not forgetting.owes(partition.group, lost_in):
            return False
        if partition.group not in forgetting:
            _log.warning(
                "%s: its replica here was declared lost by grant %d: letting go of what it has",
                partition.name,
                lost_in,
            )
            root = f"{self._config.broker.data_directory}/logs"
            directory = f"{root}/{_directory_of(topic, partition)}"
            group = partition.group
            look_again = partial(self._look_at, group)
            forgetting.forget(group, directory, look_again, lost_in=lost_in)
        return True

    def adjust_led_groups(self) -> None:
        """Give the groups led here the members and the write quorum that the state asks for."""
        for replica in self._replication.replicas.values():
            self.adjust(replica)

    def adjust(self, replica: Replica) -> None:
        """The same for one group; nothing where another broker leads it."""
        if not replica.is_leader:
            return
        cluster = self._controller.cluster
        if replica.group == CONTROLLER_GROUP:
            self._adjust_controller(replica)
            return
        partition = cluster.groups.get(replica.group)
        if partition is not None:
            config = self._topic_configs.of(cluster.topics[partition.topic], cluster)
            _bind(replica, partition, config)
            self.moving.adjust(replica, partition, config)

    def remove_strays(self) -> None:
        """Remove the logs of groups that were deleted, or moved, while this broker was away.

        Only once the state is as new as this broker's latest registration. Raises OSError where
        they cannot be listed; what cannot be removed stays."""
        root = f"{self._config.broker.data_directory}/logs"
        cluster = self._controller.cluster
        for name in self._disk.list_directory(root):
            number = name.rpartition(".")[2]
            if not number.isdigit() or int(number) == CONTROLLER_GROUP:
                continue
            group = GroupId(int(number))
            partition = cluster.groups.get(group)
            if partition is None:
                _log.info("removing %s: its partition is no more", name)
                try:
                    self._disk.remove_tree(f"{root}/{name}")
                except OSError as error:
                    _log.error("%s cannot be removed: %s", name, error)
            elif self._self_id not in partition.hosts:
                _log.info("removing %s: its partition is not here any more", name)
                look_again = partial(self._look_at, group)
                self._replication.forgetting.forget(group, f"{root}/{name}", look_again)

    # ---- each group ----------------------------------------------------------------------------

    def _open(self, specs: list[GroupSpec]) -> Iterator[None]:
        """Open these groups, a few at a time; many are made durable together. What has changed
        meanwhile has its turn after this, by what is known then."""
        opening = self._replication.opening
        are_many = len(specs) > FLUSHED_EACH_MAX
        for spec in specs:
            if self._is_closed(spec.group) or spec.group in self._changed:
                continue
            open_it = opening.add if are_many else opening.open_one
            self._attempt(partial(open_it, spec), [spec])
            if opening.is_full:
                self._finish_opening()
            yield
        self._finish_opening()

    def _closed(self) -> list[GroupId]:
        return [*self._broken, *self._damaged, *self._waiting]

    def _is_closed(self, group: GroupId) -> bool:
        closed = (self._broken, self._damaged, self._replication.forgetting)
        return any(group in groups for groups in closed)

    def _finish_opening(self) -> None:
        opening = self._replication.opening
        self._attempt(opening.finish, opening.specs)

    def _attempt(self, attempt: Callable[[], object], specs: list[GroupSpec]) -> bool:
        """Whether it went well; otherwise it is noted that these groups could not be opened."""
        try:
            attempt()
        except (OSError, StorageError) as error:
            for spec in specs:
                self._on_not_opened(spec, error)
            return False
        self._waiting.difference_update(spec.group for spec in specs)
        for spec in specs:
            self._damaged.on_opened(spec.group)
        return True

    def _on_not_opened(self, spec: GroupSpec, error: Exception) -> None:
        if is_full(error):
            self._wait_for_space(spec.group, spec.name, error)
            return
        if isinstance(error, StorageError):
            self._damaged.add(spec)
        else:
            self._broken.add(spec.group)
        _log.error("%s: its log cannot be opened, other replicas serve it: %s", spec.name, error)

    def _spec(
        self, terms: _Terms, partition: Partition, election_priority: ElectionPriority
    ) -> GroupSpec:
        first = self._controller.state.first_roles(partition.group)
        return GroupSpec(
            group=partition.group,
            name=partition.name,
            directory=_directory_of(terms.topic, partition),
            configuration=Configuration(
                voters=first.voters,
                observers=tuple(sorted(first.observers)),
                min_insync=terms.config.min_insync_replicas,
            ),
            log=terms.log,
            election_priority=election_priority,
            is_lost=self._controller.state.has_lost(self._self_id, partition.group),
            grant=partition.grant,
            rejoined=self._controller.state.rejoined(self._self_id, partition.group),
            voter_count_min=_voter_count_min(partition, terms.config),
            lag_ms_max=terms.config.replica_lag_time_max_ms,
        )

    def _know_peers(self) -> None:
        """Those that are registered. Who is not, but is heard, may be about to join."""
        brokers = self._controller.cluster.brokers
        for broker in brokers.values():
            self._replication.set_peer(broker.id, broker.rpc.host, broker.rpc.port)
        seeds = {seed.id for seed in self._config.seeds}
        for peer in self._replication.peers:
            if peer in brokers or peer in seeds or self._replication.is_peer_alive(peer):
                continue
            self._replication.remove_peer(peer)

    def _place_peers(self) -> None:
        """Tell where everybody is, and who is in another region; nobody is, for a broker that has
        none."""
        brokers = self._controller.cluster.brokers
        self._replication.nearness.place({one.id: one.labels for one in brokers.values()})
        own = brokers.get(self._self_id)
        region = "" if own is None else own.labels.region
        self._replication.throttle.place(
            broker.id for broker in brokers.values() if region and broker.labels.region != region
        )

    def _succeed(self, replica: Replica, election_priority: ElectionPriority) -> None:
        if replica.election_priority != election_priority:
            replica.election_priority = election_priority
            self._replication.liveness.on_election_priority(replica)

    def _wait_for_space(self, group: GroupId, name: str, error: Exception) -> None:
        if not self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)
        if group not in self._waiting:
            self._waiting.add(group)
            _log.warning("%s: its log waits for space, other replicas serve it: %s", name, error)

    def _look_at(self, group: GroupId) -> None:
        self._changed[group] = None
        self._reconcile_soon()

    def _look_again(self) -> None:
        self._is_all_due = True
        self._reconcile_soon()

    def _retry(self) -> None:
        self._is_retry_due = False
        self._reconcile_soon()

    def _try_again(self) -> None:
        self._look_again()
        if self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)

    def _close_absent(self, replica: Replica) -> bool:
        """Let go of a replica that is wanted here no more; whether that is so."""
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
        self._replication.forgetting.forget(group, replica.log.directory, look_again)
        return True

    def _begin_anew(self, replica: Replica) -> None:
        """A replica's log is of no use (`raft.outdated`)."""
        group = replica.group
        if self._replication.replicas.get(group) is replica:
            self._replication.forgetting.begin_anew(
                replica,
                partial(self._look_at, group),
                rejoined=self._controller.state.rejoined(self._self_id, group),
            )

    def _adjust_controller(self, replica: Replica) -> None:
        """Every broker follows the controller's group."""
        present = replica.configuration
        wanted = tuple(sorted(set(self._controller.cluster.brokers) - set(present.voters)))
        if present.observers == wanted:
            return
        if not present.is_joint:
            replica.change_configuration(
                voters=present.voters, observers=wanted, min_insync=present.min_insync
            )
        if replica.configuration.observers != wanted and not self._is_controller_due:
            # Another change is under way; who is not in it yet waits for this one.
            self._is_controller_due = True
            self._clock.call_later(CHANGE_RETRY_MS, partial(self._adjust_controller_again, replica))

    def _adjust_controller_again(self, replica: Replica) -> None:
        self._is_controller_due = False
        self.adjust(replica)

    def _log_config(self, topic: Topic, config: TopicConfig, producer_expiry_ms: int) -> LogConfig:
        return LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            index_interval_bytes=config.index_interval_bytes,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            retention_records=config.strandline_retention_records,
            delete=config.is_deleted,
            compacted=config.is_compacted,
            was_compacted=topic.was_compacted,
            delete_retention_ms=config.delete_retention_ms,
            producer_expiry_ms=producer_expiry_ms,
            write_caching=config.write_caching,
            flush_ms=min(config.flush_ms, FLUSH_MS_MAX),
            flush_messages=config.flush_messages,
            trust_ms=self._config.storage.trust_ms,
            preallocate=self._config.storage.preallocate,
        )


def _directory_of(topic: Topic, partition: Partition) -> str:
    return f"{topic.name[:TOPIC_CHARACTERS_MAX]}-{partition.index}.{partition.group}"


def _is_behind(partition: Partition, replica: Replica) -> bool:
    """Whether the state known here is older than the replica's log, or than its fence: who hears
    of the controller late may have been removed, and given back what it holds, and be needed again
    by now. A fence that is removed with it would be forgotten."""
    grant = grant_of(replica.epoch)
    return grant > partition.grant or replica.configuration.version > partition.last_version


def _bind(replica: Replica, partition: Partition, config: TopicConfig) -> None:
    """What the topic asks of its replicas, beside what their log is kept by."""
    replica.appender.voter_count_min = _voter_count_min(partition, config)
    replica.lag_ms_max = config.replica_lag_time_max_ms


def _voter_count_min(partition: Partition, config: TopicConfig) -> int:
    """See `Appender`. Whether voters may leave or not: they may have until a moment ago.

    Where fewer replicas are wanted, and were granted, there may be so few from now on."""
    count = len(partition.replicas)
    if partition.is_moving and partition.granted.is_alike(partition.wanted):
        count = min(count, len(partition.target))
    return min(config.min_insync_replicas, count)

"""Which Raft groups live on this broker: the controller's, and a replica of each partition that the
committed state puts here.

Why:    topics come, change and go in the controller's log; each broker makes its own share true.
How:    after every step of replay, what is there is compared with what ought to be: peers are made
        known, groups opened, closed and removed, logs given the topic's present configuration, and
        a leader gives its group the members that are wanted (`moving`). Groups are opened only once
        the state knows this very data directory, since a replica whose disk is gone must not vote
        as if it remembered. What lies in `logs` and belongs to no group is removed once the state
        is known to be as new as this broker's registration.
Owns:   the decision to open, close or remove a group here.
Source: design sections 3 and 6; reliability reference 1b (a wiped follower that votes)."""

import logging
from collections.abc import Callable, Iterator
from functools import partial

from strandline.base.clock import Clock
from strandline.base.disk import Disk, is_full
from strandline.base.errors import StorageError
from strandline.broker.controller_host import ControllerHost
from strandline.broker.controller_log import ControllerLog
from strandline.broker.damaged_logs import DamagedLogs
from strandline.broker.draining import first_to_lead
from strandline.broker.leader_ranks import LeaderRanks
from strandline.broker.moving import Moving
from strandline.broker.topic_configs import TopicConfigs
from strandline.config.broker import BrokerConfig
from strandline.config.cluster import ClusterConfig
from strandline.config.topic import TopicConfig
from strandline.controller.decision import maintained_of
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.raft.configuration import Configuration
from strandline.replication.group_spec import GroupSpec
from strandline.replication.host import Replication
from strandline.replication.opening import FLUSHED_EACH_MAX
from strandline.replication.replica import Replica
from strandline.replication.succession import Succession
from strandline.storage.config import LogConfig

CONTROLLER_NAME = "@controller"
TOPIC_CHARACTERS_MAX = 200
"""How much of a topic's name goes into its directories' names; the group's id makes them unique."""

RECONCILE_SHARE_MS = 20
FULL_RETRY_MS = 10_000
FLUSH_MS_MAX = 60_000
"""What is never flushed never commits, and keeps compaction and retention waiting."""

_log = logging.getLogger("strandline.broker")


class Hosting:
    """See the module. `directory_id` names this broker's data directory."""

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
        directory_id: str,
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
        self._directory_id = directory_id
        self._reconcile_soon = reconcile_soon
        self.moving = Moving(
            clock=clock,
            replication=replication,
            controller=controller,
            leader_ranks=leader_ranks,
            adjust=self.adjust,
        )
        # What is left to do for this version of the cluster.
        self._version = -1
        self._work: Iterator[None] = iter(())
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
                retention_ms=-1, delete=False, preallocate=self._config.storage.preallocate
            ),
            succession=Succession(voters[0]),
            asks_voters=True,
        )

    @property
    def is_registered(self) -> bool:
        """Whether the state as replayed here knows this broker with this data directory."""
        directory = self._controller.state.directories.get(self._self_id)
        return directory is not None and directory.id == self._directory_id

    def reconcile(self) -> bool:
        """Go on making what is here what the state asks for, for a share of a pass of the loop.

        False while there is more to do: call again in a later pass. Opening a log takes
        milliseconds, and heartbeats must not wait for thousands of them."""
        version = self._controller.cluster.version
        if version != self._version:
            self._version = version
            self._finish_opening()
            self._work = self._steps()
        end_ms = self._clock.monotonic_ms() + RECONCILE_SHARE_MS
        return all(self._clock.monotonic_ms() < end_ms for _ in self._work)

    def _steps(self) -> Iterator[None]:
        """The work for one version of the state, in steps; given up when that has moved on."""
        cluster = self._controller.cluster
        self._know_peers()
        self._place_peers()
        self._topic_configs.forget_absent(cluster)
        yield from self._close_absent()
        if not self.is_registered:
            return
        values = ClusterConfig.from_values(cluster.cluster_configs)
        maintained = maintained_of(cluster)
        absent: list[GroupSpec] = []
        for topic in cluster.topics.values():
            config = self._topic_configs.of(topic, cluster)
            log_config = self._log_config(config, values.producer_id_expiration_ms)
            asked = self._leader_ranks.of(topic, cluster)
            for partition in topic.partitions:
                if self._self_id in partition.hosts:
                    replica = self._replication.replicas.get(partition.group)
                    ranks = self._leader_ranks.ranks(asked, partition)
                    succession = Succession(first_to_lead(partition, maintained), ranks)
                    if replica is None:
                        spec = self._spec(
                            topic, partition, config=config, log=log_config, succession=succession
                        )
                        absent.append(spec)
                    else:
                        self._succeed(replica, succession)
                        replica.placed = partition.roles
                        replica.appender.voter_count_min = _voter_count_min(partition, config)
                        if replica.log.config != log_config:
                            replica.log.config = log_config
                    yield
        yield from self._open(absent)
        self.adjust_led_groups()

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
            self.moving.adjust(replica, partition, config)

    def remove_strays(self) -> None:
        """Remove the logs of groups that were deleted, or moved, while this broker was away.

        Only once the state is as new as this broker's latest registration. Raises OSError."""
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
                self._disk.remove_tree(f"{root}/{name}")
            elif self._self_id not in partition.hosts:
                _log.info("removing %s: its partition is not here any more", name)
                self._replication.forgetting.forget(group, f"{root}/{name}", self._look_again)

    # ---- each group ----------------------------------------------------------------------------

    def _open(self, specs: list[GroupSpec]) -> Iterator[None]:
        """Open these groups, a few at a time; many are made durable together."""
        closed = (self._broken, self._damaged, self._replication.forgetting)
        wanted = [spec for spec in specs if not any(spec.group in groups for groups in closed)]
        opening = self._replication.opening
        if len(wanted) <= FLUSHED_EACH_MAX:
            for spec in wanted:
                self._attempt(partial(opening.open_one, spec), [spec])
                yield
            return
        for spec in wanted:
            self._attempt(partial(opening.add, spec), [spec])
            if opening.is_full:
                self._finish_opening()
            yield
        self._finish_opening()

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
        self,
        topic: Topic,
        partition: Partition,
        *,
        config: TopicConfig,
        log: LogConfig,
        succession: Succession,
    ) -> GroupSpec:
        first = self._controller.state.first_roles(partition.group)
        short = topic.name[:TOPIC_CHARACTERS_MAX]
        return GroupSpec(
            group=partition.group,
            name=partition.name,
            directory=f"{short}-{partition.index}.{partition.group}",
            configuration=Configuration(
                voters=first.voters,
                observers=tuple(sorted(first.observers)),
                min_insync=config.min_insync_replicas,
            ),
            log=log,
            succession=succession,
            is_lost=self._controller.state.has_lost(self._self_id, partition.group),
            grant=partition.grant,
            voter_count_min=_voter_count_min(partition, config),
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
        self._replication.recovery.place(
            broker.id for broker in brokers.values() if region and broker.labels.region != region
        )

    def _succeed(self, replica: Replica, succession: Succession) -> None:
        if replica.succession != succession:
            replica.succession = succession
            self._replication.liveness.on_succession(replica)

    def _wait_for_space(self, group: GroupId, name: str, error: Exception) -> None:
        if not self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)
        if group not in self._waiting:
            self._waiting.add(group)
            _log.warning("%s: its log waits for space, other replicas serve it: %s", name, error)

    def _look_again(self) -> None:
        self._version = -1
        self._reconcile_soon()

    def _try_again(self) -> None:
        self._look_again()
        if self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)

    def _close_absent(self) -> Iterator[None]:
        groups = self._controller.cluster.groups
        for group, replica in list(self._replication.replicas.items()):
            if group == CONTROLLER_GROUP:
                continue
            partition = groups.get(group)
            if partition is None:
                _log.info("%s: removing its replica from this broker", replica.name)
                self._replication.close_group(group, remove=True)
                yield
            elif self._self_id not in partition.hosts and not _is_behind(partition, replica):
                _log.info("%s: has moved from this broker: removing its replica", replica.name)
                directory = replica.log.directory
                self._replication.forgetting.forget(group, directory, self._look_again)
                yield
        here = {group for group, one in groups.items() if self._self_id in one.hosts}
        self._broken &= here
        self._damaged.keep(here)
        self._waiting &= here

    def _adjust_controller(self, replica: Replica) -> None:
        """Every broker follows the controller's group."""
        present = replica.configuration
        wanted = tuple(sorted(set(self._controller.cluster.brokers) - set(present.voters)))
        if present.observers != wanted and not present.is_joint:
            replica.change_configuration(
                voters=present.voters, observers=wanted, min_insync=present.min_insync
            )

    def _log_config(self, config: TopicConfig, producer_expiry_ms: int) -> LogConfig:
        return LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            index_interval_bytes=config.index_interval_bytes,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            retention_records=config.strandline_retention_records,
            delete=config.is_deleted,
            compacted=config.is_compacted,
            delete_retention_ms=config.delete_retention_ms,
            producer_expiry_ms=producer_expiry_ms,
            write_caching=config.write_caching,
            flush_ms=min(config.flush_ms, FLUSH_MS_MAX),
            flush_messages=config.flush_messages,
            preallocate=self._config.storage.preallocate,
        )


def _is_behind(partition: Partition, replica: Replica) -> bool:
    """Whether the state known here is older than the replica's log: who hears of the controller
    late may have been removed, and given back what it holds, and be needed again by now."""
    return replica.configuration.version > partition.last_version


def _voter_count_min(partition: Partition, config: TopicConfig) -> int:
    """See `Appender`."""
    may_shrink = config.voters_shrink_enable or partition.acting or partition.grant
    return min(config.min_insync_replicas, len(partition.replicas)) if may_shrink else 0

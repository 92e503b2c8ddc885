"""Which Raft groups live on this broker: the controller's, and a replica of each partition that the
committed state puts here.

Why:    topics come, change and go in the controller's log; each broker makes its own share true.
How:    after every step of replay, what is there is compared with what ought to be: peers are made
        known, groups opened, closed and removed, logs given the topic's present configuration, and
        a leader gives its group the present min.insync.replicas. Groups are opened only once the
        state knows this very data directory, since a replica whose disk is gone must not vote as if
        it remembered. What lies in `logs` and belongs to no group is removed once the state is
        known to be as new as this broker's registration.
Owns:   the decision to open, close or remove a group here.
Source: design sections 3 and 6; reliability reference 1b (a wiped follower that votes)."""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from strandline.base.clock import Clock
from strandline.base.disk import Disk, is_full
from strandline.base.errors import StorageError
from strandline.broker.controller_host import ControllerHost
from strandline.broker.topic_configs import TopicConfigs
from strandline.config.broker import BrokerConfig
from strandline.config.cluster import ClusterConfig
from strandline.config.topic import TopicConfig
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.raft.configuration import Configuration
from strandline.replication.host import GroupSpec, Replication
from strandline.replication.replica import Replica
from strandline.storage.config import LogConfig

CONTROLLER_NAME = "@controller"
TOPIC_CHARACTERS_MAX = 200
"""How much of a topic's name goes into its directories' names; the group's id makes them unique."""

RECONCILE_SHARE_MS = 20
FULL_RETRY_MS = 10_000
BROKEN_RETRY_MS = 10_000

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
        self._directory_id = directory_id
        self._reconcile_soon = reconcile_soon
        # What is left to do for this version of the cluster.
        self._version = -1
        self._work: Iterator[None] = iter(())
        # Groups whose log could not be opened; those of them whose damage was to be cut.
        self._broken: set[GroupId] = set()
        self._cut: set[GroupId] = set()
        # Groups whose log found no space to begin in: they are tried again.
        self._waiting: set[GroupId] = set()

    def open_controller(self) -> Replica:
        """Open group 0. Raises OSError, StorageError."""
        for seed in self._config.seeds:
            self._replication.set_peer(seed.id, seed.address.host, seed.address.port)
        voters = tuple(sorted(seed.id for seed in self._config.seeds))
        observers = () if self._self_id in voters else (self._self_id,)
        return self._replication.open_group(
            GroupSpec(
                group=CONTROLLER_GROUP,
                name=f"{CONTROLLER_NAME}-0",
                directory=f"{CONTROLLER_NAME}.{CONTROLLER_GROUP}",
                configuration=Configuration(voters=voters, observers=observers),
                log=LogConfig(
                    retention_ms=-1, delete=False, preallocate=self._config.storage.preallocate
                ),
                preferred=voters[0],
                asks_voters=True,
            )
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
            self._work = self._steps()
        end_ms = self._clock.monotonic_ms() + RECONCILE_SHARE_MS
        return all(self._clock.monotonic_ms() < end_ms for _ in self._work)

    def _steps(self) -> Iterator[None]:
        """The work for one version of the state, in steps; given up when that has moved on."""
        cluster = self._controller.cluster
        for broker in cluster.brokers.values():
            self._replication.set_peer(broker.id, broker.rpc.host, broker.rpc.port)
        self._topic_configs.forget_absent(cluster)
        yield from self._close_absent()
        if not self.is_registered:
            return
        values = ClusterConfig.from_values(cluster.cluster_configs)
        for topic in cluster.topics.values():
            config = self._topic_configs.of(topic, cluster)
            log_config = self._log_config(config, values.producer_id_expiration_ms)
            for partition in topic.partitions:
                if self._self_id in partition.replicas:
                    self._host(topic, partition, config, log_config)
                    yield
        self.adjust_led_groups()

    def adjust_led_groups(self) -> None:
        """Give the groups led here the members and the write quorum that the state asks for."""
        for replica in self._replication.replicas.values():
            self.adjust(replica)

    def adjust(self, replica: Replica) -> None:
        """The same for one group; nothing where another broker leads it."""
        if not replica.is_leader or replica.configuration.is_joint:
            return
        cluster = self._controller.cluster
        if replica.group == CONTROLLER_GROUP:
            self._change(replica, replica.configuration.min_insync, observers=cluster.brokers)
            return
        partition = cluster.groups.get(replica.group)
        topic = None if partition is None else cluster.topics.get(partition.topic)
        if topic is not None:
            config = self._topic_configs.of(topic, cluster)
            self._change(replica, config.min_insync_replicas)

    def remove_strays(self) -> None:
        """Remove the logs of groups that were deleted while this broker was away.

        Only once the state is as new as this broker's latest registration. Raises OSError."""
        root = f"{self._config.broker.data_directory}/logs"
        cluster = self._controller.cluster
        for name in self._disk.list_directory(root):
            number = name.rpartition(".")[2]
            if not number.isdigit() or int(number) == CONTROLLER_GROUP:
                continue
            partition = cluster.groups.get(GroupId(int(number)))
            if partition is None or self._self_id not in partition.replicas:
                _log.info("removing %s: its partition is no more, or not here any more", name)
                self._disk.remove_tree(f"{root}/{name}")

    # ---- each group ----------------------------------------------------------------------------

    def _host(
        self, topic: Topic, partition: Partition, config: TopicConfig, log_config: LogConfig
    ) -> None:
        replica = self._replication.replicas.get(partition.group)
        if replica is not None:
            if replica.log.config != log_config:
                replica.log.config = log_config
            return
        if partition.group in self._broken:
            return
        name = partition.name
        try:
            self._replication.open_group(
                GroupSpec(
                    group=partition.group,
                    name=name,
                    directory=self._directory_of(partition),
                    configuration=Configuration(
                        voters=partition.replicas, min_insync=config.min_insync_replicas
                    ),
                    log=log_config,
                    preferred=partition.replicas[0],
                    is_lost=self._controller.state.has_lost(self._self_id, partition.group),
                )
            )
            self._waiting.discard(partition.group)
            self._cut.discard(partition.group)
        except (OSError, StorageError) as error:
            if is_full(error):
                self._wait_for_space(partition.group, name, error)
                return
            if not self._broken:
                self._clock.call_later(BROKEN_RETRY_MS, self._open_broken)
            self._broken.add(partition.group)
            _log.error("%s: its log cannot be opened, other replicas serve it: %s", name, error)

    def _open_broken(self) -> None:
        """Take part again with logs that were damaged at the start, where another broker leads: as
        one that lost its disk, and kept the part before the damage.

        See decision 0007. Where the rest cannot be opened either, all of it is copied anew."""
        cluster = self._controller.cluster
        for group in list(self._broken):
            leader = self._replication.leaders.get(group)
            partition = cluster.groups.get(group)
            if (
                leader is not None
                and leader.leader != self._self_id
                and partition is not None
                and self._replication.is_peer_alive(leader.leader)
            ):
                configuration = Configuration(voters=partition.replicas)
                opened = partial(self._reopen, partition)
                self._replication.distrust(group, configuration, opened)
        if self._broken:
            self._clock.call_later(BROKEN_RETRY_MS, self._open_broken)

    def _reopen(self, partition: Partition, error: OSError | None) -> None:
        """It is durable that the replica has lost what it had acknowledged: open what is left."""
        group = partition.group
        if error is not None or group not in self._broken:
            return
        if group in self._cut:
            directory = self._directory_of(partition)
            self._disk.remove_tree(f"{self._config.broker.data_directory}/logs/{directory}")
        self._cut.add(group)
        self._broken.discard(group)
        _log.warning("%s: opened without what is damaged", partition.name)
        self._version = -1
        self._reconcile_soon()

    @staticmethod
    def _directory_of(partition: Partition) -> str:
        short = partition.topic[:TOPIC_CHARACTERS_MAX]
        return f"{short}-{partition.index}.{partition.group}"

    def _wait_for_space(self, group: GroupId, name: str, error: Exception) -> None:
        if not self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)
        if group not in self._waiting:
            self._waiting.add(group)
            _log.warning("%s: its log waits for space, other replicas serve it: %s", name, error)

    def _try_again(self) -> None:
        self._version = -1
        self._reconcile_soon()
        if self._waiting:
            self._clock.call_later(FULL_RETRY_MS, self._try_again)

    def _close_absent(self) -> Iterator[None]:
        groups = self._controller.cluster.groups
        for group, replica in list(self._replication.replicas.items()):
            if group == CONTROLLER_GROUP:
                continue
            partition = groups.get(group)
            if partition is None or self._self_id not in partition.replicas:
                _log.info("%s: removing its replica from this broker", replica.name)
                self._replication.close_group(group, remove=True)
                yield
        self._broken &= groups.keys()
        self._cut &= groups.keys()
        self._waiting &= groups.keys()

    def _change(
        self, replica: Replica, min_insync: int, *, observers: Iterable[BrokerId] = ()
    ) -> None:
        present = replica.configuration
        wanted = tuple(sorted(set(observers) - set(present.voters)))
        if present.observers != wanted or present.min_insync != min_insync:
            replica.change_configuration(
                voters=present.voters, observers=wanted, min_insync=min_insync
            )

    def _log_config(self, config: TopicConfig, producer_expiry_ms: int) -> LogConfig:
        return LogConfig(
            segment_bytes=config.segment_bytes,
            segment_ms=config.segment_ms,
            index_interval_bytes=config.index_interval_bytes,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            delete=config.is_deleted,
            compacted=config.is_compacted,
            delete_retention_ms=config.delete_retention_ms,
            producer_expiry_ms=producer_expiry_ms,
            preallocate=self._config.storage.preallocate,
        )

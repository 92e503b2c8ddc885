"""The group coordinator on this broker: a shard for each partition of the offsets topic it leads.

Why:    a group belongs to a partition of `__consumer_offsets`, and the leader of that partition
        coordinates the group.
How:    A replica begins to lead: its shard loads. It leads no more: the shard closes and answers
        its requests NOT_COORDINATOR. The topic is created when a client first asks for a
        coordinator. Shards follow the controller's log: deleted topics lose their offsets, and
        cluster-wide keys take effect.
Owns:   the shards, the tokens of requests, the sweep for expired offsets.
Source: design section 3; kafka-protocol reference 8.3."""

import asyncio
import logging
import random
from itertools import count
from uuid import UUID

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.coordinator_shard import CoordinatorShard
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.operations.ticker import Ticker
from strandline.config.cluster import ClusterConfig
from strandline.config.topic import DEFAULT_TOPIC_CONFIG
from strandline.controller.commands import Answer as ControllerAnswer
from strandline.controller.commands import EnsureInternalTopic, Refused
from strandline.controller.names import OFFSETS_TOPIC
from strandline.controller.records import ConfigsChanged, Record, TopicDeleted
from strandline.coordinator.answers import Answer
from strandline.coordinator.partitioning import partition_for
from strandline.coordinator.requests import Request, lacks_group_id
from strandline.coordinator.settings import OFFSETS_EXPIRY_INTERVAL_MS, GroupSettings
from strandline.model.cluster import Partition
from strandline.model.ids import GroupId
from strandline.protocol.errors import Error
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

_log = logging.getLogger("strandline.broker")


class CoordinatorHost:
    """See the module."""

    def __init__(
        self,
        *,
        replication: Replication,
        controller: ControllerHost,
        clock: Clock,
        rng: random.Random,
        topic_configs: TopicConfigs,
    ) -> None:
        self.new_token = count(1).__next__
        self._controller = controller
        self._clock = clock
        self._rng = rng
        self._topic_configs = topic_configs
        self._shards: dict[GroupId, CoordinatorShard] = {}
        """{Raft group: the shard of a partition that is led here}"""
        self._creating: asyncio.Task[ControllerAnswer] | None = None
        self._sweep = Ticker(
            clock,
            self._expire,
            interval_ms=OFFSETS_EXPIRY_INTERVAL_MS,
            log=_log,
            failure="cannot expire the offsets of groups that are gone",
        )
        replication.on_leadership.append(self._on_leadership)
        controller.on_applied.append(self._on_applied)
        controller.on_adopted.append(self._on_adopted)

    def stop(self) -> None:
        """Close all shards."""
        for shard in list(self._shards.values()):
            shard.close()
        self._shards.clear()
        self._sweep.stop()
        if self._creating is not None:
            self._creating.cancel()

    # ---- for handlers ----------------------------------------------------------------------------

    def partition_of(self, group: str) -> Partition | None:
        """The partition of a group; None while `__consumer_offsets` does not exist."""
        topic = self._controller.cluster.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return None
        return topic.partitions[partition_for(group, partition_count=len(topic.partitions))]

    def shard_of(self, group: str) -> CoordinatorShard:
        """The shard that coordinates a group, ready to answer.

        Raises ApiError NOT_COORDINATOR or COORDINATOR_LOAD_IN_PROGRESS."""
        partition = self.partition_of(group)
        shard = None if partition is None else self._shards.get(partition.group)
        error = Error.NOT_COORDINATOR if shard is None else shard.error
        if shard is None or error is not Error.NONE:
            raise ApiError(error)
        return shard

    async def ask(self, request: Request) -> Answer:
        """The answer to a request made with a `new_token`. Raises ApiError as `shard_of`, and
        INVALID_GROUP_ID."""
        if lacks_group_id(request):
            raise ApiError(Error.INVALID_GROUP_ID)
        return await self.shard_of(request.group).ask(request)

    async def ask_unless_loading(self, request: Request) -> Answer | None:
        """As `ask`; None while the coordinator still reads its log."""
        try:
            return await self.ask(request)
        except ApiError as error:
            if error.code != Error.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            return None

    @property
    def shards(self) -> list[CoordinatorShard]:
        """All shards of this broker, loading ones included."""
        return list(self._shards.values())

    async def ensure_topic(self) -> None:
        """Make sure that `__consumer_offsets` exists; raises ApiError with the reason why not."""
        if OFFSETS_TOPIC in self._controller.cluster.topics:
            return
        if self._creating is None:
            submitting = self._controller.submit(EnsureInternalTopic(OFFSETS_TOPIC))
            self._creating = asyncio.get_running_loop().create_task(submitting)
            self._creating.add_done_callback(self._on_created)
        answer = await asyncio.shield(self._creating)
        if isinstance(answer, Refused):
            raise ApiError(answer.error_code, answer.message)

    def _on_created(self, task: asyncio.Task[ControllerAnswer]) -> None:
        self._creating = None
        if not task.cancelled():
            task.exception()  # Waiting callers have the exception; perhaps none waits.

    # ---- what happens ----------------------------------------------------------------------------

    def _on_leadership(self, replica: Replica, *, is_leading: bool) -> None:
        shard = self._shards.pop(replica.group, None)
        if shard is not None:
            shard.close()
        if not is_leading:
            return
        partition = self._controller.cluster.groups.get(replica.group)
        if partition is None or partition.topic != OFFSETS_TOPIC:
            return
        shard = CoordinatorShard(
            replica,
            clock=self._clock,
            rng=self._rng,
            settings=self._settings(),
            batch_bytes_max=self._batch_bytes_max,
        )
        self._shards[replica.group] = shard
        # Not from within the step that made it leader.
        self._clock.call_soon(shard.start)
        if not self._sweep.is_running:
            self._sweep.start()

    def _on_applied(self, record: Record) -> None:
        if isinstance(record, TopicDeleted):
            for shard in self.shards:
                shard.on_topics_deleted({record.name: record.id})
        elif isinstance(record, ConfigsChanged) and record.scope == "cluster":
            self._renew_settings()

    def _on_adopted(self, gone: dict[str, UUID]) -> None:
        for shard in self.shards:
            shard.on_topics_deleted(gone)
        self._renew_settings()

    def _renew_settings(self) -> None:
        settings = self._settings()
        for shard in self.shards:
            shard.coordinator.settings = settings

    def _settings(self) -> GroupSettings:
        return GroupSettings.of(ClusterConfig.from_values(self._controller.cluster.cluster_configs))

    @property
    def group_bytes_max(self) -> int:
        """The most that the log takes of one group: all its members, with their assignments."""
        return self._batch_bytes_max()

    def _batch_bytes_max(self) -> int:
        cluster = self._controller.cluster
        topic = cluster.topics.get(OFFSETS_TOPIC)
        if topic is None:  # It was deleted, and this broker is about to close its shards.
            return DEFAULT_TOPIC_CONFIG.max_message_bytes
        return self._topic_configs.of(topic, cluster).max_message_bytes

    def _expire(self) -> None:
        for shard in self.shards:
            shard.expire()

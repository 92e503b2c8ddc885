"""A whole broker on a simulated host: request handlers, coordinators and controller.

Why:    everything between a client's request and the disk keeps a promise; most of it is above
        `Replication`.
How:    boots `Broker` on the seams of a host. A client's request is a frame of the Kafka protocol
        for the broker's router, and its answer is read from the bytes. A broker that cannot start,
        or that gives up, ends its process; its supervisor starts it again.
Owns:   nothing that outlives its process.
Source: design section 3 ("only two places put a broker together"); `cli.serve` is the other one."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal, TypeVar

import msgspec

from strandline.base.errors import ApiError
from strandline.broker.broker import Broker
from strandline.broker.operations.balancing import Findings
from strandline.broker.partitions import present_leader
from strandline.config.broker import (
    BrokerConfig,
    BrokerSection,
    ClusterSection,
    DrillsSection,
    StorageSection,
)
from strandline.config.listener_section import ListenerSection
from strandline.config.other_ports import RpcSection
from strandline.config.security_section import SecuritySection
from strandline.config.tiered_section import TieredSection
from strandline.controller.commands import ConfigOperation, ResourceType
from strandline.controller.records import (
    BrokerRegistered,
    ConfigsChanged,
    GrantBegun,
    LeaderAppointed,
    ReassignmentSet,
    Record,
    ReplicasDeclaredLost,
    VotersGranted,
    VotersStable,
)
from strandline.controller.snapshots.format import checksum
from strandline.controller.snapshots.image import capture
from strandline.model.cluster import Cluster, Labels, Partition, StoredLabels
from strandline.model.ids import CONTROLLER_GROUP, NO_BROKER, BrokerId, GroupId, Index, Offset
from strandline.protocol.codec import decode
from strandline.protocol.errors import Error
from strandline.protocol.headers import decode_response_header, encode_request
from strandline.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.protocol.table import Message
from strandline.raft.group.configuration import Configuration
from strandline.replication.leader.appender import NO_ACKS
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.facts import (
    ConfigurationCommitted,
    Declaration,
    LossRecorded,
    ReplicaRemoved,
    StateReached,
    VotersRecorded,
)
from strandline.simulation.invariants.outages import balancer_moved
from strandline.simulation.invariants.placements import placement_of
from strandline.simulation.network.network import SimNetwork
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.world.caller import Caller
from strandline.simulation.world.host import Seams
from strandline.simulation.world.member import (
    DATA_DIRECTORY,
    SCRUB_INTERVAL_MS,
    Member,
    ReadDone,
)
from strandline.simulation.world.scheduler import US_PER_MS
from strandline.simulation.world.topics import topic_of
from strandline.simulation.world.trace import Trace
from strandline.tiered.objects.buckets import Buckets

UPKEEP_INTERVAL_MS = 400
LOOK_INTERVAL_MS = 20
CHATTER_MS = 50
CHATTER_KEY = "alarm.webhook.url"
CHATTER_URL = "http://alarms/"
ALARM_HOSTS = ("alarms", "alarms.example")
CHATTER_EXTRA_MS = 1_000
"""It begins a moment before the load."""
PRODUCE_TIMEOUT_MS = 1_000
ASK_AGAIN_MS = 100
CORRELATION_ID = 77
PRODUCE_VERSION = 9
FETCH_VERSION = 12
CREATE_TOPICS_VERSION = 7
ALTER_CONFIGS_VERSION = 1
WORDS: dict[type, Literal["granted", "stable", "grant", "appointed", "declared"]] = {
    VotersGranted: "granted",
    VotersStable: "stable",
    GrantBegun: "grant",
    LeaderAppointed: "appointed",
    ReplicasDeclaredLost: "declared",
}
VoterRecord = VotersGranted | VotersStable | GrantBegun | LeaderAppointed | ReplicasDeclaredLost
"""Records that change the voters, or name the leader."""

A = TypeVar("A", bound=Message)


def config_of(
    broker: BrokerId,
    seeds: Iterable[int],
    storage: StorageSection,
    tiered: TieredSection | None = None,
) -> BrokerConfig:
    """The configuration of a simulated broker; addresses are names that nothing resolves."""
    return BrokerConfig(
        broker=BrokerSection(id=broker, data_directory=DATA_DIRECTORY),
        cluster=ClusterSection(seeds=tuple(f"{one}@host-{one}:1" for one in seeds)),
        listener=ListenerSection(kafka_host=f"kafka-{broker}", kafka_port=9_092),
        rpc=RpcSection(host=f"host-{broker}", port=1),
        storage=storage,
        tiered=tiered or TieredSection(),
        drills=DrillsSection(enable=True),
        security=SecuritySection(webhook_hosts=ALARM_HOSTS),
    )


def storage_of(scenario: Scenario) -> StorageSection:
    """How logs are looked after: often, and for damage where the scenario says so."""
    storage = StorageSection(
        retention_check_interval_ms=UPKEEP_INTERVAL_MS,
        preallocate=scenario.log.preallocate,
        trust_ms=scenario.log.trust_ms,
    )
    rate = scenario.scrub_bytes_per_s
    if rate:
        storage = replace(storage, scrub_rate=rate, scrub_interval_ms=SCRUB_INTERVAL_MS)
    return storage


def tiered_of(scenario: Scenario) -> TieredSection:
    """Buckets that are looked after often, with short time-outs."""
    return TieredSection(
        buckets=tuple(f"{region}=file:///{region}" for region in scenario.bucket_regions),
        check_interval_ms=50,
        export_interval_ms=200,
        upload_stall_timeout_ms=1_000,
        delete_grace_ms=1_000,
    )


class BrokerMember(Member):
    """See the module. `on_joined` gets the cluster's id, `on_ended` the reason why the broker
    gave up."""

    checks_leases = True

    def __init__(
        self,
        broker: BrokerId,
        seams: Seams,
        *,
        life: int,
        disk_number: int,
        cluster_id: str,
        labels: Labels,
        kept_labels: StoredLabels | None,
        on_labelled: Callable[[StoredLabels], None],
        on_joined: Callable[[str], None],
        on_ended: Callable[[str], None],
        scenario: Scenario,
        checker: Checker,
        trace: Trace,
        buckets: Buckets | None = None,
    ) -> None:
        super().__init__(broker, seams, life=life, scenario=scenario, checker=checker, trace=trace)
        self._on_ended = on_ended
        self.made = Broker(
            config=config_of(
                broker,
                scenario.seeds,
                storage_of(scenario),
                tiered_of(scenario),
            ),
            clock=seams.clock,
            rng=seams.rng,
            disk=seams.disk,
            replication=self.replication,
            directory_id=f"directory-{broker}-{disk_number}",
            labels=labels,
            kept_labels=kept_labels,
            on_labelled=on_labelled,
            cluster_id=cluster_id,
            on_joined=on_joined,
            on_failed=on_ended,
            buckets=buckets,
        )
        self._has_joined = False
        self._callers: list[Caller] = []
        """Those whose requests were not answered when the latest one came."""
        self.made.allow_isolation(lambda is_cut: self._cut_off(seams.network, is_cut=is_cut))
        self._known: set[Replica] = set()
        self.replication.on_configuration.append(self._on_configuration)
        self.replication.on_removal.append(self._on_forgotten)
        if scenario.lost_after_ms or scenario.shrinks_voters:
            self.made.controller.on_applied.append(self._on_applied)
        if scenario.snapshot_bytes:
            self.made.controller.on_applied.append(lambda _: self._report_state())
            self.made.controller.on_adopted.append(lambda _: self._report_state())
            self._chatter_later()
        self._starting = asyncio.get_running_loop().create_task(self._start())
        self._look()

    async def _start(self) -> None:
        try:
            await self.made.start()
        except Exception as error:  # What `cli.serve` prints before it ends.
            self._on_ended(f"cannot start: {error}")
            return
        self._has_joined = True

    @property
    def is_serving(self) -> bool:
        """Whether it has joined, and takes requests: not while it is cut off for a drill."""
        return self._has_joined and not self.made.services.isolation.is_cut

    def _cut_off(self, network: SimNetwork, *, is_cut: bool) -> None:
        """As `cli.serve` has it: silence towards brokers, and clients' connections are closed."""
        self._trace.add(f"broker {self.broker}", "is cut off" if is_cut else "is cut off no more")
        network.silence(is_silent=is_cut)
        callers, self._callers = self._callers, []
        for caller in callers:
            caller.close("connection closed")

    def stop(self) -> None:
        """See `Member`."""
        self.made.stop()
        super().stop()

    def _on_configuration(
        self, replica: Replica, index: Index, configuration: Configuration
    ) -> None:
        if replica.group != CONTROLLER_GROUP:
            fact = ConfigurationCommitted(replica.group, index, configuration)
            self._checker.configuration_committed(fact)

    def _on_forgotten(self, group: GroupId) -> None:
        first = self.made.controller.state.first_roles(group).voters
        replica = self.replication.replicas.get(group)
        is_outdated = replica is not None and replica.raft.is_outdated
        has_state = self.replication.removal.knows(group) and not is_outdated
        fact = ReplicaRemoved(group, self.broker, self.life, first, has_state=has_state)
        self._checker.replica_removed(fact)

    def _report_state(self) -> None:
        image = capture(self.made.controller.state)
        encoded = msgspec.msgpack.encode(list(image.parts()))
        version = self.made.controller.cluster.version
        self._checker.state_reached(StateReached(self.broker, version, checksum(encoded)))

    def _chatter(self) -> None:
        """Have the controller decide something that matters to no promise, about as long as there
        is load. The value says since when, and how often: `URL/MS/COUNT`."""
        now_ms = self._trace.now_us // US_PER_MS
        value = self.made.controller.cluster.cluster_configs.get(CHATTER_KEY)
        began, count = (now_ms, 0)
        if value is not None:
            began, count = map(int, value.removeprefix(CHATTER_URL).split("/"))
        if now_ms > began + self.scenario.active_ms + CHATTER_EXTRA_MS:
            return
        if not self.made.controller.is_active:
            self._chatter_later()
            return
        self.set_cluster_config(
            CHATTER_KEY,
            f"{CHATTER_URL}{began}/{count + 1}",
            done=self._chatter_later,
            failed=lambda _: self._chatter_later(),
        )

    def _chatter_later(self) -> None:
        self._clock.call_later(CHATTER_MS, self._chatter)

    def _on_applied(self, record: Record) -> None:
        """Tell of placements that have changed, and of all where what they are judged by has."""
        cluster = self.made.controller.cluster
        if isinstance(record, ReplicasDeclaredLost):
            self._report_loss(record, cluster)
        if isinstance(record, VoterRecord):
            self._report_voters(record, cluster)
        if not self.scenario.lost_after_ms:
            return
        if isinstance(record, ReassignmentSet) and record.by_balancer and record.target:
            self._checker.balancer_moved(balancer_moved(record, cluster, at_us=self._trace.now_us))
        if isinstance(record, ReassignmentSet | VotersStable):
            changed = [cluster.groups[record.group]]
        elif isinstance(record, ConfigsChanged | BrokerRegistered):
            changed = list(cluster.groups.values())
        else:
            return
        for partition in changed:
            known = placement_of(partition, cluster)
            if known is not None:
                self._checker.placement_known(known)

    def _report_loss(self, record: ReplicasDeclaredLost, cluster: Cluster) -> None:
        loss = record.loss
        declaration = Declaration(
            group=record.group,
            grant=loss.grant,
            lost=tuple(one.broker for one in loss.lost),
            leader=loss.leader,
            at_risk_from=Offset(loss.committed),
            end=Offset(loss.end),
        )
        version = cluster.groups[record.group].version
        self._checker.loss_recorded(LossRecorded(declaration, version))

    def _report_voters(self, record: VoterRecord, cluster: Cluster) -> None:
        partition = cluster.groups[record.group]
        self._checker.voters_recorded(
            VotersRecorded(
                group=record.group,
                what=WORDS[type(record)],
                state_version=cluster.version,
                grant=partition.grant,
                possible=partition.possible,
                own=partition.replicas,
                leader=record.leader if isinstance(record, LeaderAppointed) else None,
            )
        )

    @property
    def findings(self) -> Findings | None:
        """What its balancer knows, where it is the active controller."""
        return self.made.services.balancing.findings

    @property
    def is_moving(self) -> bool:
        """Whether, as it is known here, any replicas move."""
        return bool(self.made.controller.cluster.moving)

    def _look(self) -> None:
        """Watch the replicas that came since."""
        for replica in self.replication.replicas.values():
            if replica not in self._known:
                self._known.add(replica)
                self.watch(replica)
            if self.scenario.shrinks_voters:
                self._checker.roles.note_epoch(self.broker, replica.group, replica.epoch)
        self._clock.call_later(LOOK_INTERVAL_MS, self._look)

    # ---- requests ----------------------------------------------------------------------------

    def ask(
        self,
        request: Message,
        cls: type[A],
        version: int,
        *,
        on_answer: Callable[[A], None],
        on_closed: Callable[[str], None],
        connection: int = 1,
    ) -> None:
        """Hand a request to the router; `on_answer` runs inside the broker, at once or later.

        A broker that has not joined yet has no open port: `on_closed`."""
        if not self.is_serving:
            on_closed("connection refused")
            return
        sent = encode_request(
            request, version, correlation_id=CORRELATION_ID, client_id="simulated"
        )

        def read(data: bytes) -> None:
            if data:
                key = request.API_KEY
                _, position = decode_response_header(data, key, version, position=4)
                on_answer(decode(cls, data, position, version)[0])

        caller = Caller(read, on_closed, connection)
        self.made.router.route(memoryview(sent), caller)
        self._callers = [one for one in (*self._callers, caller) if one.is_open]

    def partition_of(self, group: GroupId) -> Partition | None:
        """The partition whose Raft group this is."""
        return self.made.controller.cluster.groups.get(group)

    def leader_of(self, group: GroupId) -> BrokerId:
        """See `Member`: as in the answer to a Metadata request."""
        partition = self.partition_of(group)
        if partition is None or not self.is_serving:
            return NO_BROKER
        return present_leader(self.made.services, partition)[0]

    def produce(
        self, group: GroupId, batch: bytearray, *, acks: int, done: Callable[[AppendResult], None]
    ) -> None:
        """See `Member`."""
        partition = self.partition_of(group)
        if partition is None:
            done(AppendResult(Error.UNKNOWN_TOPIC_OR_PARTITION, -1, -1))
            return
        data = PartitionProduceData(partition.index, memoryview(batch))
        topic = TopicProduceData(name=partition.topic, partition_data=[data])

        def on_answer(answer: ProduceResponse) -> None:
            one = answer.responses[0].partition_responses[0]
            message = one.error_message or ""
            done(AppendResult(one.error_code, one.base_offset, one.log_start_offset, message))

        def on_closed(reason: str) -> None:
            if acks != NO_ACKS:
                done(AppendResult(Error.NOT_LEADER_OR_FOLLOWER, -1, -1, reason))

        self.ask(
            ProduceRequest(None, acks, PRODUCE_TIMEOUT_MS, [topic]),
            ProduceResponse,
            PRODUCE_VERSION,
            on_answer=on_answer,
            on_closed=on_closed,
        )

    def read(self, replica: Replica, position: Offset, max_bytes: int, done: ReadDone) -> None:
        """See `Member`: a Fetch request."""
        partition = self.partition_of(replica.group)
        if partition is None:
            done(b"", ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION))
            return
        wanted = FetchPartition(
            partition=partition.index, fetch_offset=position, partition_max_bytes=max_bytes
        )

        def on_answer(answer: FetchResponse) -> None:
            one = answer.responses[0].partitions[0]
            code = answer.error_code or one.error_code
            assert one.records is None or isinstance(one.records, bytes | bytearray | memoryview)
            done(bytes(one.records or b""), ApiError(code) if code else None)

        self.ask(
            FetchRequest(
                max_wait_ms=0,
                min_bytes=1,
                max_bytes=max_bytes,
                topics=[FetchTopic(topic=partition.topic, partitions=[wanted])],
            ),
            FetchResponse,
            FETCH_VERSION,
            on_answer=on_answer,
            on_closed=lambda _: done(b"", ApiError(Error.NOT_LEADER_OR_FOLLOWER)),
        )

    def create_topics(self, failed: Callable[[str], None]) -> None:
        """Create the groups of the scenario as topics, in the order of their numbers; again where
        the controller does not know whether it has."""
        refusals = {Error.NONE}

        def on_answer(answer: CreateTopicsResponse) -> None:
            codes = {one.error_code for one in answer.topics}
            if Error.REQUEST_TIMED_OUT in codes:
                refusals.add(Error.TOPIC_ALREADY_EXISTS)
                self._clock.call_later(ASK_AGAIN_MS, ask)
                return
            for one in answer.topics:
                if one.error_code not in refusals:
                    failed(f"NoUnexpectedError: {one.name}: {one.error_message}")

        topics = [topic_of(plan, self.scenario) for plan in self.scenario.groups]

        def ask() -> None:
            self.ask(
                CreateTopicsRequest(topics=topics),
                CreateTopicsResponse,
                CREATE_TOPICS_VERSION,
                on_answer=on_answer,
                on_closed=failed,
            )

        ask()

    def set_cluster_config(
        self, key: str, value: str, *, done: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        """Set a key for the whole cluster; again where the controller does not know whether it
        has."""

        def on_answer(answer: IncrementalAlterConfigsResponse) -> None:
            code = answer.responses[0].error_code
            if code == Error.REQUEST_TIMED_OUT:
                self._clock.call_later(ASK_AGAIN_MS, ask)
            elif code:
                failed(f"NoUnexpectedError: {key}: {answer.responses[0].error_message}")
            else:
                done()

        resource = AlterConfigsResource(
            resource_type=ResourceType.BROKER,
            resource_name="",
            configs=[AlterableConfig(key, ConfigOperation.SET, value)],
        )

        def ask() -> None:
            self.ask(
                IncrementalAlterConfigsRequest([resource]),
                IncrementalAlterConfigsResponse,
                ALTER_CONFIGS_VERSION,
                on_answer=on_answer,
                on_closed=failed,
            )

        ask()

    def knows(self, broker: BrokerId) -> bool:
        """Whether the committed state, as it is known here, has that broker."""
        return broker in self.made.controller.cluster.brokers

    def has_opened_all(self) -> bool:
        """Whether this start is known, and every log that this broker should hold is open: what it
        has lost shows from then on."""
        groups = self.made.controller.cluster.groups.values()
        hosted = {one.group for one in groups if self.broker in one.hosts}
        return self.is_serving and hosted <= self.replication.replicas.keys()

    def is_whole(self) -> bool:
        """Whether every replica that this broker holds remembers what it promised."""
        replicas = self.replication.replicas
        return CONTROLLER_GROUP in replicas and not any(
            replica.raft.has_lost_state for replica in replicas.values()
        )

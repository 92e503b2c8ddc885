"""Produce: hands batches to their replicas, and answers at the requested acknowledgement.

Why:    the hottest path of the broker. A request costs no task, no future and no timer: each
        partition calls back, and the last one answers.
How:    decode -> per partition: find the leader, validate, give the topic's codec, replicate ->
        results. Large batches are validated and compressed beside the loop. Partitions fail each
        for itself. acks=1 is answered once appended here, acks=all once committed; acks=0 has no
        answer, so an error closes the connection: a client notices nothing else. If the quorum does
        not answer in time, the answer is REQUEST_TIMED_OUT: the records may or may not survive, and
        the retry of an idempotent producer settles it.
Owns:   one ProduceCall for each request that waits.
Source: KIP-98 (idempotence), KIP-951 (the present leader in the error), KIP-516 (topic ids in v13).
"""

from __future__ import annotations

from functools import partial
from itertools import islice

import msgspec

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.broker.partitions import find_writable, present_leader, topic_by_id
from strandline.broker.produce.partition_results import (
    NO_OFFSET,
    NO_TIMESTAMP,
    SEQUENCE_ERRORS,
    fail,
    refuse,
)
from strandline.broker.produce.produced_batches import (
    ProducedBatches,
    has_write_quorum,
    records_of,
    refuse_transactions,
)
from strandline.broker.quotas.crossings import note_crossings
from strandline.broker.read_replicas.hosting import READ_ONLY, is_read_replica
from strandline.broker.server.batch_validation import Allowance
from strandline.broker.server.recompression import (
    INLINE_BYTES_MAX,
    Recompressed,
    recompress_aside,
    recompress_now,
)
from strandline.broker.server.request_limits import ITEM_COUNT_MAX
from strandline.controller.names import INTERNAL_TOPICS
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import BrokerId
from strandline.protocol.codec import encode
from strandline.protocol.errors import Error, message_of
from strandline.protocol.fast_produce import decode_request, encode_usual_response
from strandline.protocol.messages.produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from strandline.records.batch import set_append_time
from strandline.records.recompress import has_codec
from strandline.records.validate import validate_produced
from strandline.records.validate_contents import ContentRules
from strandline.replication.leader.requests import AppendResult
from strandline.replication.replica.replica import Replica

TOPIC_IDS_SINCE_VERSION = 13
NO_ACKS = 0
ALL_ACKS = -1
LEGAL_ACKS = (-1, 0, 1)
_NONE = int(Error.NONE)
_UNKNOWN_TOPIC = int(Error.UNKNOWN_TOPIC_OR_PARTITION)


def start(context: RequestContext) -> None:
    """Begin; answers now or later."""
    assert context.frame is not None
    request, _ = decode_request(
        context.frame, context.position, context.api_version, items_max=ITEM_COUNT_MAX
    )
    context.frame = None  # The batches belong to their replicas now.
    if context.limits is not None:
        note_crossings(context, request)
    ProduceCall(context, request).start(request)


class ProduceCall:
    """One request on its way; see the module."""

    __slots__ = (
        "_acks",
        "_allowance",
        "_aside",
        "_context",
        "_endpoints",
        "_is_over",
        "_requested",
        "_results",
        "_services",
        "_waiting_count",
        "deadline_ms",
    )

    def __init__(self, context: RequestContext, request: ProduceRequest) -> None:
        self._context = context
        self._services = context.services
        self._acks = request.acks
        self._requested = request.topic_data
        # Each partition's answer in the order of the request, filled in as it becomes known.
        self._results: list[PartitionProduceResponse] = []
        self._endpoints: list[NodeEndpoint] = []
        # One more than the partitions that wait, so that the answer cannot go before all began.
        self._waiting_count = 1
        # Batches that are validated or compressed beside the loop.
        self._aside: list[ProducedBatches] = []
        # None while one partition is all that there is to validate.
        self._allowance: Allowance | None = None
        self._is_over = False
        self.deadline_ms = 0

    def start(self, request: ProduceRequest) -> None:
        """Hand every partition's batches on."""
        has_legal_acks = self._acks in LEGAL_ACKS
        topics = request.topic_data
        if len(topics) != 1 or len(topics[0].partition_data) != 1:
            self._allowance = Allowance(self._context.size_bytes)
        for requested in request.topic_data:
            topic, missing = self._find_topic(requested)
            for data in requested.partition_data:
                result = PartitionProduceResponse(data.index, _NONE, NO_OFFSET)
                self._results.append(result)
                if not has_legal_acks:
                    fail(result, Error.INVALID_REQUIRED_ACKS)
                elif topic is None:
                    fail(result, missing)
                elif is_read_replica(topic):
                    fail(result, Error.POLICY_VIOLATION, READ_ONLY)
                elif topic.name in INTERNAL_TOPICS:
                    fail(result, Error.INVALID_TOPIC_EXCEPTION, "only brokers write to this topic")
                else:
                    self._start_partition(topic, data, result)
                data.records = None  # The answer needs the names alone.
        self._waiting_count -= 1
        if self._waiting_count == 0:
            self._finish()
            return
        self.deadline_ms = self._services.clock.monotonic_ms() + max(0, request.timeout_ms)
        self._services.deadlines.add(self)

    def expire(self) -> None:
        """The quorum did not answer in time; see `purgatory.Deadlines`."""
        for result in self._results:
            if result.base_offset == NO_OFFSET and result.error_code == Error.NONE:
                fail(result, Error.REQUEST_TIMED_OUT)
        for batches in self._aside:  # They come again; those behind them must not pass them.
            if batches.replica.is_leader:
                batches.replica.appender.note_refused(batches.headers, Error.REQUEST_TIMED_OUT)
        self._finish()

    # ---- each partition ------------------------------------------------------------------------

    def _find_topic(self, requested: TopicProduceData) -> tuple[Topic | None, int]:
        """The topic, or the error code."""
        services, context = self._services, self._context
        name = requested.name
        if context.api_version >= TOPIC_IDS_SINCE_VERSION:
            topic = topic_by_id(services, requested.topic_id)
            if topic is None:
                return None, Error.UNKNOWN_TOPIC_ID
            name = topic.name
        else:
            topic = services.cluster.topics.get(name)
        is_enforced = services.access.is_enforced
        if is_enforced and not context.may(Operation.WRITE, Kind.TOPIC, name):
            return None, Error.TOPIC_AUTHORIZATION_FAILED
        return topic, _UNKNOWN_TOPIC

    def _start_partition(
        self, topic: Topic, data: PartitionProduceData, result: PartitionProduceResponse
    ) -> None:
        services = self._services
        if not 0 <= data.index < len(topic.partitions):
            fail(result, Error.UNKNOWN_TOPIC_OR_PARTITION)
            return
        partition = topic.partitions[data.index]
        replica, error = find_writable(services, partition)
        if replica is None:
            self._fail_leadership(partition, result, error)
            return
        terms = services.topic_configs.entry(topic, services.cluster).terms
        if self._acks == ALL_ACKS and not has_write_quorum(replica, terms.min_insync_replicas):
            fail(result, Error.NOT_ENOUGH_REPLICAS)
            return
        now_ms = services.clock.wall_ms()
        rules = terms.rules_at(now_ms)
        try:
            records = records_of(data)
            headers = validate_produced(
                records,
                max_bytes=terms.max_message_bytes,
                produce_version=self._context.api_version,
            )
            refuse_transactions(headers)
            is_validated = services.validation.validate_now(
                records, headers, rules, self._allowance
            )
        except ApiError as refusal:
            refuse(result, refusal, replica)
            return
        self._waiting_count += 1
        batches = ProducedBatches(
            partition,
            result,
            replica,
            records,
            headers,
            now_ms if terms.has_append_time else NO_TIMESTAMP,
            terms.compression,
            terms.max_message_bytes,
        )
        if is_validated and terms.compression is None:
            self._replicate(batches)
        elif is_validated:
            is_large = len(records) > INLINE_BYTES_MAX or not rules.reads_compressed
            self._store(batches, is_large=is_large)
        else:
            self._validate_aside(batches, rules)

    def _validate_aside(self, batches: ProducedBatches, rules: ContentRules) -> None:
        """Have the worker validate large batches. The connection is not read meanwhile: its later
        requests must not overtake this one."""
        context = self._context
        if not self._services.validation.has_room:
            context.close("too many large batches of closed connections wait to be validated")
            return
        self._aside.append(batches)
        context.blocked_by = self
        self._services.validation.validate_aside(
            batches.records,
            batches.headers,
            rules,
            self._allowance or Allowance(context.size_bytes),
            done=partial(self._on_validated, batches),
        )

    def _on_validated(self, batches: ProducedBatches, refusal: ApiError | None) -> None:
        """The worker's call-back."""
        self._aside.remove(batches)
        try:
            if refusal is not None:
                refuse(batches.result, refusal, batches.replica)
                self._count_down()
            elif not self._is_over:  # A producer that was told of a time-out sends them again.
                self._store(batches, is_large=True)
        except Exception:
            self._context.fail()
        if not self.is_holding:
            self._context.sink.on_unblocked()

    def _store(self, batches: ProducedBatches, *, is_large: bool) -> None:
        """Give valid batches the codec of their topic, and hand them to their replica. The worker
        compresses large ones: those that it has validated, too."""
        wanted, records = batches.compression, batches.records
        if wanted is None or has_codec(batches.headers, wanted.codec):
            self._replicate(batches)
            return
        allowance = self._allowance or Allowance(self._context.size_bytes)
        allowance.anew_inline_bytes -= len(records)
        if not is_large and allowance.anew_inline_bytes >= 0:
            try:
                converted = recompress_now(
                    records, batches.headers, wanted, allowance, max_bytes=batches.max_bytes
                )
            except ApiError as refusal:
                self._on_recompressed(batches, refusal)
            else:
                self._on_recompressed(batches, converted)
        else:
            self._aside.append(batches)
            self._context.blocked_by = self
            recompress_aside(
                self._services.validation,
                records,
                batches.headers,
                wanted,
                allowance,
                max_bytes=batches.max_bytes,
                done=partial(self._on_recompressed_aside, batches),
            )

    def _on_recompressed(self, batches: ProducedBatches, outcome: Recompressed | ApiError) -> None:
        if isinstance(outcome, ApiError):
            refuse(batches.result, outcome, batches.replica)
            self._count_down()
        elif not self._is_over:
            records, headers = outcome
            anew = msgspec.structs.replace(batches, records=records, headers=headers)
            self._replicate(anew)

    def _on_recompressed_aside(
        self, batches: ProducedBatches, outcome: Recompressed | ApiError
    ) -> None:
        """The worker's call-back."""
        self._aside.remove(batches)
        try:
            self._on_recompressed(batches, outcome)
        except Exception:
            self._context.fail()
        if not self.is_holding:
            self._context.sink.on_unblocked()

    @property
    def is_holding(self) -> bool:
        """Whether some of its batches are on the worker; see `context.Blocker`."""
        return bool(self._aside)

    def _replicate(self, batches: ProducedBatches) -> None:
        """Hand valid batches to their replica."""
        result, replica, append_time_ms = batches.result, batches.replica, batches.append_time_ms
        records, headers, partition = batches.records, batches.headers, batches.partition
        if append_time_ms != NO_TIMESTAMP:
            result.log_append_time_ms = append_time_ms
            for header in headers:
                set_append_time(records, header, append_time_ms)
        replica.replicate(
            [records],
            headers,
            acks=self._acks,
            done=partial(self._on_appended, partition, result, replica),
        )
        context = self._context
        self._services.writers.note(partition.group, context.sink.client_host, len(records))
        if replica.appender.is_holding and not self.is_holding:
            context.blocked_by = replica.appender

    def _on_appended(
        self,
        partition: Partition,
        result: PartitionProduceResponse,
        replica: Replica,
        outcome: AppendResult,
    ) -> None:
        """A replica's call-back: nothing that goes wrong here may reach the replica."""
        if self._is_over:
            return
        try:
            if outcome.error_code:
                self._fail_leadership(partition, result, outcome.error_code, outcome.message)
                if outcome.error_code in SEQUENCE_ERRORS:
                    result.log_start_offset = replica.log_start_offset
            else:
                result.base_offset = outcome.base_offset
                result.log_start_offset = outcome.log_start_offset
            self._count_down()
        except Exception:
            self._context.fail()

    def _count_down(self) -> None:
        """One partition less to wait for."""
        if self._is_over:
            return
        self._waiting_count -= 1
        if self._waiting_count == 0:
            self._services.deadlines.discard(self)
            self._finish()

    def _fail_leadership(
        self,
        partition: Partition,
        result: PartitionProduceResponse,
        code: int,
        message: str = "",
    ) -> None:
        """Refuse a partition; if another broker leads, name it."""
        fail(result, code, message)
        if code == Error.NOT_LEADER_OR_FOLLOWER:
            leader, epoch = present_leader(self._services, partition)
            result.current_leader = LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
            self._add_endpoint(leader)

    def _add_endpoint(self, leader: BrokerId) -> None:
        """Add the address of a leader to the answer."""
        broker = self._services.cluster.brokers.get(leader)
        session = self._context.session
        address = None if broker is None else broker.address_at(session.listener, session.host)
        endpoints = self._endpoints
        if (
            broker is not None
            and address is not None
            and all(one.node_id != leader for one in endpoints)
        ):
            endpoints.append(
                NodeEndpoint(
                    node_id=leader,
                    host=address.host,
                    port=address.port,
                    rack=broker.labels.kafka_rack(),
                )
            )

    # ---- the answer ----------------------------------------------------------------------------

    def _finish(self) -> None:
        self._is_over = True
        context = self._context
        if self._acks == NO_ACKS:
            self._finish_without_answer()
            return
        results = self._results
        if (
            len(results) == len(self._requested) == 1
            and not self._endpoints
            and not context.throttle_ms
        ):
            body = encode_usual_response(self._requested[0], results[0], context.api_version)
            if body is not None:
                context.respond((body,))
                return
        context.respond((encode(self._response(), context.api_version),))

    def _response(self) -> ProduceResponse:
        results = iter(self._results)
        return ProduceResponse(
            [
                TopicProduceResponse(
                    topic.name,
                    topic.topic_id,
                    list(islice(results, len(topic.partition_data))),
                )
                for topic in self._requested
            ],
            throttle_time_ms=self._context.throttle_ms,
            node_endpoints=self._endpoints,
        )

    def _finish_without_answer(self) -> None:
        errors = {one.error_code for one in self._results} - {int(Error.NONE)}
        self._context.respond_nothing()
        if errors:
            reasons = " ".join(message_of(code) for code in sorted(errors))
            self._context.close(f"a produce request with acks=0 failed: {reasons}")

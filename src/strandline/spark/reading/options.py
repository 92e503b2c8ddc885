"""What a query asks for, checked when the query is planned, before a broker is asked.

Why:    a misspelt option that is passed over reads other records than the query's author thinks.
How:    option_table.py knows the names, option_values.py reads numbers and durations; here they
        become one frozen object, which Spark sends to its executors.
Source: Spark's guide to its Kafka connector; decisions/0049."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.base.errors import OperatorError
from strandline.client.access import Access
from strandline.client.buckets.options import BucketOptions
from strandline.model.cluster import Address
from strandline.spark.access import parse_reach
from strandline.spark.columns import DEFAULT_COLUMNS, TYPES
from strandline.spark.reading.bounds import (
    EARLIEST,
    LATEST,
    Bound,
    Edge,
    Offsets,
    Time,
    Times,
    TopicPartition,
    name_of,
    parse_assignment,
    parse_by_partition,
    parse_edge_or_offsets,
)
from strandline.spark.reading.bucket_options import parse_bucket_options
from strandline.spark.reading.option_table import (
    OPTIONS,
    Use,
)
from strandline.spark.reading.option_values import Values, known_option

RECORDS_PER_TASK = 500_000
"""At most so many offsets a task, unless the query says otherwise: 50 MB of records of 100 bytes.
Spark repeats a lost task as a whole."""
FETCH_BYTES = 4 << 20
FETCH_BYTES_MAX = 64 << 20
STALL_MS = 120_000


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which partitions are read: exactly one of the three is set."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: Mapping[str, tuple[int, ...]] | None = None


@dataclass(frozen=True, slots=True)
class ReachOptions:
    """How brokers are reached and asked."""

    bootstrap: tuple[Address, ...]
    access: Access | None = None
    """None: over plain connections."""
    client_id: str = "strandline-spark"
    rack: str = ""
    """The region to read from; empty: what an executor's environment says."""
    read_committed: bool = False
    fetch_bytes: int = FETCH_BYTES
    fetch_wait_ms: int = 500
    request_timeout_ms: int = 30_000
    plan_timeout_ms: int = 60_000
    stall_ms: int = STALL_MS
    buckets: BucketOptions | None = None
    """None: all records come from brokers."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """One query's options."""

    reach: ReachOptions
    subscription: Subscription
    columns: tuple[str, ...]
    starting: Bound | None
    """None: the default, which differs for batches and streams."""
    ending: Bound
    latest_if_no_match: bool
    """Begin at the end of a partition that has no record at or after the time asked for."""
    fail_on_data_loss: bool
    partitions_min: int | None
    records_per_task_max: int
    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    trigger_delay_max_ms: int
    given: frozenset[str]
    """The names of the options that the query gives."""

    def check_batch(self) -> None:
        """Raises OperatorError for what makes sense only in a stream."""
        starts_late = isinstance(self.starting, Edge) and self.starting.offset == LATEST
        if isinstance(self.starting, Offsets):
            starts_late = LATEST in self.starting.of.values()
        if starts_late:
            raise OperatorError(
                "startingOffsets: a batch cannot begin at latest (-1): give earliest (-2), offsets "
                "or a time"
            )
        if isinstance(self.ending, Offsets) and EARLIEST in self.ending.of.values():
            raise OperatorError("endingOffsets: a batch cannot end at earliest (-2)")

    def check_stream(self) -> None:
        """Raises OperatorError for what makes sense only in a batch."""
        for option in OPTIONS:
            if option.use is Use.BATCH and option.name in self.given:
                raise OperatorError(
                    f"{option.name}: a stream has no end: stop it, or use Trigger.AvailableNow"
                )


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a query, whose names may be in any case. Raises OperatorError, one line."""
    # Of the properties of a table, which Spark hands over all, the first refusal says what to do.
    ordered = sorted(given, key=lambda name: name.lower() != "provider")
    named = {known_option(name, OPTIONS).name: given[name] for name in ordered}
    values = Values(named)
    low, high = values.integer("minOffsetsPerTrigger"), values.integer("maxOffsetsPerTrigger")
    if low is not None and high is not None and low > high:
        raise OperatorError(f"minOffsetsPerTrigger {low} is above maxOffsetsPerTrigger {high}")
    strategy = values.word("startingOffsetsByTimestampStrategy", ("error", "latest"))
    return ReadOptions(
        reach=_parse_reach(values),
        subscription=_parse_subscription(values),
        columns=_parse_columns(values),
        starting=_parse_bound(values, "starting"),
        ending=_parse_bound(values, "ending") or Edge(LATEST),
        latest_if_no_match=strategy == "latest",
        fail_on_data_loss=values.boolean("failOnDataLoss", default=True),
        partitions_min=values.integer("minPartitions"),
        records_per_task_max=values.integer("maxRecordsPerPartition") or RECORDS_PER_TASK,
        offsets_per_trigger_max=high,
        offsets_per_trigger_min=low,
        trigger_delay_max_ms=values.duration_ms("maxTriggerDelay", default=15 * 60_000),
        given=frozenset(named),
    )


def _parse_reach(values: Values) -> ReachOptions:
    bootstrap, access = parse_reach(values)
    levels = ("read_uncommitted", "read_committed")
    default = ReachOptions(bootstrap)
    fetch_bytes = values.integer("kafka.max.partition.fetch.bytes") or default.fetch_bytes
    wait_ms = values.integer("kafka.fetch.max.wait.ms", lowest=0)
    return ReachOptions(
        bootstrap=bootstrap,
        access=access,
        client_id=values.text("kafka.client.id") or default.client_id,
        rack=values.text("kafka.client.rack"),
        read_committed=values.word("kafka.isolation.level", levels) == "read_committed",
        fetch_bytes=min(fetch_bytes, FETCH_BYTES_MAX),
        fetch_wait_ms=default.fetch_wait_ms if wait_ms is None else wait_ms,
        request_timeout_ms=values.integer("kafka.request.timeout.ms") or default.request_timeout_ms,
        plan_timeout_ms=values.integer("kafka.default.api.timeout.ms") or default.plan_timeout_ms,
        stall_ms=values.integer("kafkaConsumer.pollTimeoutMs") or default.stall_ms,
        buckets=parse_bucket_options(values),
    )


def _parse_subscription(values: Values) -> Subscription:
    ways = ("subscribe", "subscribePattern", "assign")
    given = [way for way in ways if way in values.given]
    if len(given) != 1:
        got = f", not {' and '.join(given)}" if given else ""
        raise OperatorError(f"give exactly one of subscribe, subscribePattern and assign{got}")
    (way,) = given
    text = values.text(way)
    if way == "assign":
        return Subscription(assigned=parse_assignment(text))
    if way == "subscribe":
        topics = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
        if not topics:
            raise OperatorError("subscribe names no topic: give topics with commas")
        return Subscription(topics=topics)
    try:
        re.compile(text)
    except re.error as error:
        raise OperatorError(f"subscribePattern {text!r}: {error}") from error
    if not text:
        raise OperatorError("subscribePattern is empty: give a regular expression")
    return Subscription(pattern=text)


def _parse_columns(values: Values) -> tuple[str, ...]:
    includes = {
        "key": values.boolean("includeKey", default=True),
        "value": values.boolean("includeValue", default=True),
        "headers": values.boolean("includeHeaders", default=False),
        "leaderEpoch": values.boolean("includeLeaderEpoch", default=False),
    }
    if "columns" not in values.given:
        return tuple(one for one in TYPES if includes.get(one, one in DEFAULT_COLUMNS))
    names = [part.strip() for part in values.text("columns").split(",") if part.strip()]
    by_lower = {name.lower(): name for name in TYPES}
    unknown = [name for name in names if name.lower() not in by_lower]
    if unknown or not names:
        what = f"{unknown[0]!r} is no column" if unknown else "names no column"
        raise OperatorError(f"columns: {what}: the columns are {', '.join(TYPES)}")
    columns = tuple(dict.fromkeys(by_lower[name.lower()] for name in names))
    for name, included in includes.items():
        option = f"include{name[0].upper()}{name[1:]}"
        if option in values.given and included != (name in columns):
            raise OperatorError(f"{option} contradicts columns {values.text('columns')}: give one")
    return columns


def _parse_bound(values: Values, which: str) -> Bound | None:
    """As in the Kafka connector, a time for all counts before times, and these before offsets."""
    timestamp = f"{which}Timestamp"
    by_timestamp, offsets = f"{which}OffsetsByTimestamp", f"{which}Offsets"
    timestamp_ms = values.integer(timestamp, lowest=0)
    if timestamp_ms is not None:
        return Time(timestamp, timestamp_ms)
    if by_timestamp in values.given:
        text = values.text(by_timestamp)
        return Times(by_timestamp, parse_by_partition(text, option=by_timestamp, lowest=0))
    if offsets not in values.given:
        return None
    bound = parse_edge_or_offsets(values.text(offsets), option=offsets)
    if which == "ending" and bound == Edge(EARLIEST):
        raise OperatorError("endingOffsets: nothing is before earliest: give latest or offsets")
    return bound


def check_all_named(bound: Offsets | Times, partitions: frozenset[TopicPartition]) -> None:
    """Raises OperatorError unless JSON names exactly the partitions that are read."""
    named = frozenset(bound.of)
    if missing := sorted(partitions - named):
        raise OperatorError(
            f"{bound.option}: partition {name_of(missing[0])} is missing: give every partition, "
            "with -2 for earliest and -1 for latest"
        )
    if extra := sorted(named - partitions):
        raise OperatorError(f"{bound.option}: partition {name_of(extra[0])} is not read")

"""Consumers of partitions whose records move into buckets see each record once, in order, whatever
the store does meanwhile.

Source: decision 0060."""

import random
from itertools import count

import pytest
from tests.broker.broker_world import ObedientReplica
from tests.broker.remote_world import FAR, NEAR, RemoteWorld
from tests.broker.test_fetch_handler import VERSION, fetch, parts
from tests.tiered.reading.reading_world import absent, fail, flip, halve

from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers
from strandline.records.record import decode_records

FAULTS = (fail, absent, flip, halve)
PARTITIONS = 3
ROUNDS = 60
HEAD_START = 60
"""What happens before the consumer begins, so that it reads most records out of buckets."""
RETRIED = (Error.NONE, Error.KAFKA_STORAGE_ERROR)


class Course:
    """One consumer of three partitions, and what happens around it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = RemoteWorld()
        self.replicas: list[ObedientReplica] = self.world.add_topic("t", partitions=PARTITIONS)
        self.written: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.seen: list[list[bytes | None]] = [[] for _ in range(PARTITIONS)]
        self.numbers = count()
        self.buckets = {
            one.group: self.rng.choice((NEAR, FAR, f"{NEAR},{FAR}")) for one in self.replicas
        }

    def happen(self) -> None:
        """Something that is not the consumer."""
        rng = self.rng
        at = rng.randrange(PARTITIONS)
        what = rng.choice(("write", "write", "archive", "archive", "fault", "mend", "wait"))
        if what == "write":
            size = rng.choice((10, 100, 3_000))
            values = [
                f"{next(self.numbers)}".encode().ljust(size, b".") for _ in range(rng.randint(1, 4))
            ]
            self.written[at] += values
            self.world.run(lambda: self.replicas[at].write(*values))
        elif what == "archive":
            self.archive(self.replicas[at])
        elif what == "wait":
            self.world.advance(rng.choice((100, 5_000, 70_000)))
        else:
            ratio = 0.0 if what == "mend" else rng.choice((0.3, 1.0))
            for store in self.world.archive.stores.values():
                store.fault = self.faulty(ratio)  # type: ignore[assignment]

    def faulty(self, ratio: float) -> object:
        def fault(*where: object) -> object:
            return self.rng.choice(FAULTS)(*where) if self.rng.random() < ratio else None

        return fault

    def archive(self, replica: ObedientReplica) -> None:
        """The oldest local batches go, up to a batch's end."""
        local, end = replica.local_log_start_offset, replica.high_watermark
        if local == end:
            return
        data = self.world._run(lambda: replica.log.read_records(local, 1 << 30, end).bytes())
        assert isinstance(data, bytes)
        ends = [header.next_offset for header in iterate_headers(data)]
        target = self.rng.choice(ends)
        self.world.archive_below(replica, target, buckets=self.buckets[replica.group])
        self.world.run(replica.watchers.notify)

    def consume(self, *, is_calm: bool = False) -> None:
        """One fetch, while other things happen unless it `is_calm`; its answer."""
        rng = self.rng
        request = fetch(
            *(len(one) for one in self.seen),
            max_wait_ms=rng.choice((0, 100, 500)),
            min_bytes=rng.choice((1, 1, 2_000)),
            max_bytes=rng.choice((1, 2_000, 1 << 20)),
            partition_bytes=rng.choice((1, 700, 1 << 20)),
        )
        pending = self.world.send(request, VERSION)
        if not is_calm and rng.random() < 0.3:
            self.happen()
        self.world.advance(600)
        assert pending.is_answered
        for at, one in enumerate(parts(pending)):
            assert one.error_code in RETRIED
            records = one.records
            if not isinstance(records, memoryview):
                continue
            for header in iterate_headers(records):
                for record in decode_records(records, header.position):
                    offset = header.base_offset + record.offset_delta
                    if offset >= len(self.seen[at]):
                        assert offset == len(self.seen[at]), "a gap"
                        self.seen[at].append(record.value)

    def end(self) -> None:
        """Everything works again: the consumer gets what it lacks."""
        for store in self.world.archive.stores.values():
            store.fault = lambda *_: None
        self.world.advance(60_000)
        for _ in range(400):
            if [len(one) for one in self.seen] == [len(one) for one in self.written]:
                break
            self.consume(is_calm=True)
        assert self.seen == self.written
        self.world.close()


@pytest.mark.parametrize("seed", range(12))
def test_each_record_is_seen_once_in_order(seed: int) -> None:
    course = Course(seed)
    for _ in range(HEAD_START):
        course.happen()
    for _ in range(ROUNDS):
        course.happen()
        course.consume()
    course.end()

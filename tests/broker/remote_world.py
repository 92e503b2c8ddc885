"""A broker whose partitions have their old records in buckets only."""

from tests.broker.broker_world import BrokerWorld, ObedientReplica
from tests.tiered.reading.reading_world import CHUNK_BYTES, Buckets, FaultyStore, make_object

from strandline.broker.fetch.remote_log import RemoteLog
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.records.batch import iterate_headers
from strandline.tiered.reading.reader import RemoteReader
from strandline.tiered.state.commands import Command, GoLive, Intend
from strandline.tiered.state.tier import TierState

NEAR = "near"
FAR = "far"


class RemoteWorld(BrokerWorld):
    """See the module. Chunks have 1 KiB."""

    def __init__(self) -> None:
        super().__init__()
        self.archive = Buckets()
        self.reader = RemoteReader(
            buckets=self.archive,
            disk=self.disk,
            directory="/data/tiered-cache",
            clock=self.clock,
            cache_bytes_max=1 << 20,
        )
        self.remote_log = RemoteLog(self.reader, lambda: (NEAR, FAR))
        self.services.remote_log = self.remote_log
        self.run(self.remote_log.start)

    def archive_below(
        self, replica: ObedientReplica, offset: int, *, objects: int = 1, buckets: str = NEAR
    ) -> None:
        """Put the records from where the local log begins to `offset` into buckets, in so many
        objects, and leave only the others on the disk. `buckets`: their names, with commas."""
        state = replica.tier.state
        assert isinstance(state, TierState)
        start = replica.local_log_start_offset
        data = self._run(lambda: replica.log.read_records(start, 1 << 30, Offset(offset)).bytes())
        assert isinstance(data, bytes)
        batches = [data[one.position : one.position + one.size] for one in iterate_headers(data)]
        for bucket in buckets.split(","):
            store = self.archive.stores.setdefault(bucket, FaultyStore())
            for at in range(objects):
                part = batches[at * len(batches) // objects : (at + 1) * len(batches) // objects]
                headers = [next(iterate_headers(one)) for one in part]
                base, end = headers[0].base_offset, headers[-1].next_offset
                name = f"c/{replica.name}/{bucket}/{base}"
                store.objects[name], entry = make_object(part, base, end, name, CHUNK_BYTES)
                self._apply(state, Intend(bucket, name, base, end, BrokerId(1)), offset)
                self._apply(state, GoLive(bucket, entry), offset)
        replica.local_start = Offset(offset)

    def _apply(self, state: TierState, command: Command, log_end: int) -> None:
        index = Index(state.index + 1)
        assert state.apply(index, Epoch(1), command, log_end=Offset(log_end)) is None

    def close(self) -> None:
        self.run(self.remote_log.stop)
        super().close()

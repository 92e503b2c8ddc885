"""A log on a disk that forgets, and ways to write to it."""

from tests.storage.storage_world import ForgetfulDisk, ManualClock

from strandline.model.ids import Epoch, Index
from strandline.records.batch import read_header
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log

DIRECTORY = "/data/topic-0.1"
HOUR_MS = 3_600_000
MARK_INTERVAL_MS = 5_000


class World:
    """A log and ways to write to it."""

    def __init__(self, **config: int | bool) -> None:
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.clock = ManualClock()
        self.disk.now_ms = self.clock.wall_ms
        self.config = LogConfig(**{"segment_bytes": 1_000, "preallocate": False, **config})
        self.log = self.open()

    def open(self, *, flushed_index: int = -1, cut_corruption: bool = False) -> Log:
        return Log.open(
            self.disk,
            DIRECTORY,
            config=self.config,
            clock=self.clock,
            flushed_index=Index(flushed_index),
            cut_corruption=cut_corruption,
        )

    def kill(self) -> None:
        """The process ends, and nothing else does."""
        self.clock.forget()
        self.disk.kill()

    def append(
        self,
        count: int = 1,
        *,
        epoch: int = 1,
        timestamp: int | None = None,
        size: int = 30,
        attributes: int = 0,
        codec: int = 0,
    ) -> bytes:
        start = self.clock.wall if timestamp is None else timestamp
        records = [Record(n, start + n, b"key", b"v" * size) for n in range(count)]
        batch = bytes(
            build_batch(
                records,
                base_offset=self.log.end_offset,
                epoch=epoch,
                attributes=attributes,
                codec=codec,
            )
        )
        self.write(batch)
        return batch

    def write(self, batch: bytes) -> None:
        header = read_header(batch)
        assert header is not None
        self.log.append([batch], [header])

    def mark(self, epoch: int) -> bytes:
        marker = build_epoch_marker(self.log.end_offset, Epoch(epoch), self.clock.wall)
        self.write(marker)
        return marker

    def flush(self) -> Index | OSError:
        results: list[Index | OSError] = []
        self.log.flush_soon(results.append)
        assert results == [], "done is never called at once"
        self.disk.run()
        self.clock.run()
        return results[0]

    def files(self, suffix: str = ".log") -> list[str]:
        return [n for n in self.disk.list_directory(DIRECTORY) if n.endswith(suffix)]

    def segment_starts(self) -> list[int]:
        return [int(name.split("-")[0]) for name in self.files()]

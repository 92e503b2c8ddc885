"""Makes the bytes of a snapshot, a slice at a time.

Why:    a cluster of a hundred thousand partitions takes most of a second to encode, and heartbeats
        must not wait for that.
How:    captured at once (containers are copied) --slices, a pass of the loop each--> all bytes
Owns:   the snapshot in the making; one at a time.
Source: decision 0062."""

from collections.abc import Callable, Iterator

from strandline.base.clock import Clock
from strandline.broker.snapshots.files import SnapshotId
from strandline.controller.snapshots.format import MAGIC, End, Head, checksum, frame
from strandline.controller.snapshots.image import Image, capture
from strandline.controller.state import ControllerState

Taken = Callable[[SnapshotId, bytes], None]


class Taking:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rest: Iterator[bytes] | None = None
        self._made: list[bytes] = []

    @property
    def is_under_way(self) -> bool:
        """Whether a snapshot is being made."""
        return self._rest is not None

    def begin(
        self, state: ControllerState, head: Head, done: Taken, *, has_secrets: bool = True
    ) -> None:
        """Take a snapshot of the state as it is now; `done` gets it, in a later pass.
        `has_secrets`: if not, it has the names of users, and nothing of their passwords."""
        assert self._rest is None, "one snapshot at a time"
        self._made = [MAGIC]
        image = capture(state)
        self._rest = _frames(head, image if has_secrets else image.without_secrets())
        self._clock.call_soon(lambda: self._step(head, done))

    def stop(self) -> None:
        """Give it up."""
        self._rest = None
        self._made = []

    def _step(self, head: Head, done: Taken) -> None:
        if self._rest is None:
            return
        made = next(self._rest, None)
        if made is not None:
            self._made.append(made)
            self._clock.call_soon(lambda: self._step(head, done))
            return
        data = b"".join(self._made)
        self.stop()
        done(SnapshotId(head.offset, head.epoch, len(data), checksum(data)), data)


def _frames(head: Head, image: Image) -> Iterator[bytes]:
    yield frame(head)
    count = 2
    for part in image.parts():
        count += 1
        yield frame(part)
    yield frame(End(count))

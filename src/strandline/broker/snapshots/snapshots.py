"""When to take a snapshot of the controller's state, when to get one, and what may go then.

Why:    without snapshots the controller's log only grows, and every start replays all of it.
How:    applied records --N bytes, or some time--> taken --> durable --> log rolled, and cut behind
                                                                         the older of two snapshots
        The leader's log begins later than this broker's ends --> a snapshot is copied --> durable
        --> adopted as the state --> only then this log begins there (`snapshot_gate`)
            A snapshot holds committed records only, so a new leader changes nothing of it.
            Every broker takes its own: all of them replay the log.
Owns:   the snapshot in the making or on its way, and the files; one per broker.
Source: decision 0062."""

import asyncio
import logging
from collections.abc import Generator
from typing import Protocol

from strandline.base.clock import Clock
from strandline.base.errors import StrandlineError
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.broker.snapshots.files import SnapshotFiles, SnapshotId
from strandline.broker.snapshots.taking import Taking
from strandline.broker.snapshots.transfer import SnapshotReceiver, SnapshotSender
from strandline.config.cluster import ClusterConfig
from strandline.controller.snapshots import format as snapshot_format
from strandline.controller.snapshots.format import BadSnapshotError, Head
from strandline.controller.state import ControllerState
from strandline.model.ids import NO_BROKER, BrokerId, Offset
from strandline.raft.messages import ResetRequest
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

DIRECTORY = "snapshots"
LOOK_INTERVAL_MS = 10_000
FETCH_RETRY_MS = 500
FAILED_RETRY_MS = 10_000
"""After a snapshot could not be written."""
DEFAULTS = ClusterConfig()

_log = logging.getLogger("strandline.controller")


class Applier(Protocol):
    """What replays the controller's log."""

    state: ControllerState

    @property
    def applied(self) -> Offset:
        """All records below this offset are in the state."""

    @property
    def leader_id(self) -> BrokerId:
        """The controller as far as known here, or NO_BROKER."""

    def adopt(self, state: ControllerState, offset: Offset) -> None:
        """Take the place of the state with one that has all records below `offset`."""


class ControllerSnapshots:
    """See the module; a `SnapshotGate`."""

    def __init__(self, applier: Applier, replication: Replication, clock: Clock) -> None:
        self._applier = applier
        self._replication = replication
        self._clock = clock
        directory = f"{replication.data_directory}/{DIRECTORY}"
        self.files = SnapshotFiles(replication.disk, directory)
        self._taking = Taking(clock)
        self._is_writing = False
        self._is_stopped = False
        self._bytes_since = 0
        self._taken_ms = clock.monotonic_ms()
        self._not_before_ms = 0
        self._is_wanted = False
        # The configuration of the cluster that these limits are of.
        self._limits_of: dict[str, str] = {}
        self._known_limits = (
            DEFAULTS.metadata_log_max_snapshot_interval_ms,
            DEFAULTS.metadata_log_max_record_bytes_between_snapshots,
        )
        self._replica: Replica | None = None
        # The reset that waits for a snapshot, and who sent it.
        self._reset: tuple[BrokerId, ResetRequest] | None = None
        self._fetching = SingleFlight()
        self._sender = SnapshotSender(self.files, replication.calls, self._take_soon)
        self._receiver = SnapshotReceiver(self.files, replication.calls)
        self._ticker = Ticker(
            clock,
            self.consider,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot take a snapshot of the controller's state",
        )

    @property
    def durable_offset(self) -> Offset:
        """See `SnapshotGate`."""
        newest = self.files.newest
        return Offset(0) if newest is None else newest.offset

    @property
    def age_ms(self) -> int:
        """The age of the newest snapshot here, or of this process without one."""
        return self._clock.monotonic_ms() - self._taken_ms

    def load(self, *, is_new: bool) -> tuple[Head, ControllerState] | None:
        """The state to start from; None for none. `is_new`: this broker has no state of the
        controller's group, so what is here is of an earlier life. Raises OSError, OperatorError."""
        self.files.open()
        if is_new:
            self.files.discard()
            return None
        found = self.files.load()
        if found is not None:
            age_ms = max(0, self._clock.wall_ms() - found[0].taken_ms)
            self._taken_ms = self._clock.monotonic_ms() - age_ms
        return found

    def start(self, replica: Replica) -> None:
        """Begin to take snapshots."""
        self._replica = replica
        self._ticker.start()
        if replica.lacks_snapshot and self.durable_offset >= replica.log.start_offset:
            self._on_durable()  # One came between the opening of the log and now.
        self._resume_reset()
        self.check()

    def stop(self) -> None:
        """Take and fetch none any more."""
        self._is_stopped = True
        self._ticker.stop()
        self._taking.stop()
        self._fetching.stop()

    # ---- taking ----------------------------------------------------------------------------------

    def on_applied(self, size_bytes: int) -> None:
        """Records of so many bytes were applied."""
        self._bytes_since += size_bytes

    def on_caught_up(self) -> None:
        """Everything that is known to be committed is applied: take a snapshot soon if it is time.
        Not from within the step that moved the log's marks: they are not settled yet."""
        if self._is_wanted or self._bytes_since >= self._limits()[1]:
            self._clock.call_soon(self.consider)

    def consider(self) -> None:
        """Take a snapshot if it is time."""
        now = self._clock.monotonic_ms()
        if (
            self._is_stopped
            or self._is_writing
            or self._taking.is_under_way
            or now < self._not_before_ms
        ):
            return
        interval_ms, bytes_max = self._limits()
        if interval_ms:
            self._ticker.interval_ms = min(LOOK_INTERVAL_MS, interval_ms)
        is_due = 0 < interval_ms <= now - self._taken_ms
        is_much = self._bytes_since >= bytes_max
        if is_due or is_much or self._is_wanted:
            self._take()

    def _limits(self) -> tuple[int, int]:
        """(ms, bytes) between two snapshots."""
        values = self._applier.state.cluster.cluster_configs
        if values != self._limits_of:
            config = ClusterConfig.from_values(values)
            self._limits_of = dict(values)
            self._known_limits = (
                config.metadata_log_max_snapshot_interval_ms,
                config.metadata_log_max_record_bytes_between_snapshots,
            )
        return self._known_limits

    def _take_soon(self) -> None:
        """Another broker needs a snapshot that is newer than those here."""
        self._is_wanted = True
        self.consider()

    def _take(self) -> None:
        replica, offset = self._replica, self._applier.applied
        if replica is None or replica.failed is not None or offset <= self.durable_offset:
            return
        log = replica.log
        if offset > replica.committed_end or offset <= log.start_offset:
            return  # What is applied may have to be known as committed here first.
        head = Head(
            offset=offset,
            epoch=log.epoch_of(log.index_of(Offset(offset - 1))),
            cluster_id=self._applier.state.cluster.cluster_id,
            taken_ms=self._clock.wall_ms(),
        )
        self._is_wanted = False
        self._bytes_since = 0
        self._taken_ms = self._clock.monotonic_ms()
        self._taking.begin(self._applier.state, head, self._on_taken)

    def _on_taken(self, snapshot: SnapshotId, data: bytes) -> None:
        if not self._is_stopped:
            self._is_writing = True
            self.files.add(snapshot, data, lambda error: self._on_added(snapshot, error))

    def _on_added(self, snapshot: SnapshotId, error: OSError | None) -> None:
        self._is_writing = False
        if self._is_stopped:
            return
        if error is not None:
            self._not_before_ms = self._clock.monotonic_ms() + FAILED_RETRY_MS
            self._is_wanted = True
            _log.warning("a snapshot of the controller's state cannot be stored: %s", error)
            return
        _log.info(
            "a snapshot of the controller's state at offset %d is stored: %d bytes",
            snapshot.offset,
            snapshot.size_bytes,
        )
        self._on_durable()

    def _on_durable(self) -> None:
        if self._replica is not None:
            self._replica.on_snapshot(self.files.needless_before)

    # ---- getting one -----------------------------------------------------------------------------

    def fetch_before(self, leader: BrokerId, request: ResetRequest) -> None:
        """See `SnapshotGate`."""
        self._reset = leader, request
        self.check()

    def check(self) -> None:
        """Begin to fetch a snapshot if one is lacking."""
        if self._needed() and not self._fetching.is_under_way and not self._is_stopped:
            self._fetching.begin(self._fetch)

    def _needed(self) -> Offset:
        """Up to where a snapshot is needed; 0 if none is."""
        needed = Offset(0)
        if self._reset is not None:
            needed = self._reset[1].start_offset
        if self._replica is not None and self._replica.failed is None:
            start = self._replica.log.start_offset
            if self._replica.lacks_snapshot or self._applier.applied < start:
                needed = max(needed, start)
        return needed if needed > self.durable_offset else Offset(0)

    async def _fetch(self) -> None:
        _log.warning(
            "this broker lacks decisions of the controller below offset %d, which the other "
            "brokers keep in snapshots only: it copies one",
            self._needed(),
        )
        while (needed := self._needed()) and not self._is_stopped:
            try:
                found = await self._receiver.copy(needed, self._sources())
                if found is not None:
                    await self._install(*found)
                    continue
            except (OSError, StrandlineError) as error:
                _log.warning("a snapshot cannot be copied now, trying again: %s", error)
            await self._pause(FETCH_RETRY_MS)

    def _sources(self) -> list[BrokerId]:
        """Brokers to ask: the leader first."""
        leader = self._applier.leader_id if self._reset is None else self._reset[0]
        alive = [one for one in self._replication.peers if self._replication.is_peer_alive(one)]
        known = [leader] if leader not in (NO_BROKER, self._replication.self_id) else []
        return list(dict.fromkeys([*known, *sorted(alive)]))

    async def _install(self, snapshot: SnapshotId, data: bytes) -> None:
        """Make a copied snapshot durable, adopt it, and go on with what waited for it."""
        try:
            steps = snapshot_format.read_steps(data)
            state = await self._read(steps)
        except BadSnapshotError as error:
            self.files.drop_incoming()
            _log.warning("a copied snapshot is not right: %s", error)
            return
        await self._store(snapshot)
        _log.info("a snapshot of the controller's state at offset %d was copied", snapshot.offset)
        if snapshot.offset > self._applier.applied:
            self._applier.adopt(state, snapshot.offset)
        self._bytes_since = 0
        self._taken_ms = self._clock.monotonic_ms()
        self._on_durable()
        self._resume_reset()

    def _resume_reset(self) -> None:
        """Have the log begin anew where the leader said, if a snapshot goes that far."""
        if self._reset is not None and self._replica is not None:
            leader, request = self._reset
            if request.start_offset <= self.durable_offset:
                self._reset = None
                self._replica.on_message(leader, request)

    async def _read(
        self, steps: Generator[None, None, tuple[Head, ControllerState]]
    ) -> ControllerState:
        """Read a slice in each pass of the loop."""
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                state: ControllerState = stop.value[1]
                return state
            await self._pause(0)

    async def _store(self, snapshot: SnapshotId) -> None:
        """Make a copied snapshot durable. Raises OSError."""
        while self._is_writing:
            await self._pause(FETCH_RETRY_MS)
        self._is_writing = True
        stored: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()

        def on_added(error: OSError | None) -> None:
            self._is_writing = False
            if not stored.done():
                stored.set_result(error)

        self.files.add_incoming(snapshot, on_added)
        error = await stored
        if error is not None:
            raise error

    async def _pause(self, delay_ms: int) -> None:
        woken = asyncio.Event()
        self._clock.call_later(delay_ms, woken.set)
        await woken.wait()

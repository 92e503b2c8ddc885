"""A simulated machine: a clock and a disk that last, and one process after the other.

Why:    every kind of program under test must lose and keep the same things when it is killed, when
        the power fails, and when it is stopped for a while.
How:    `start` boots a program on fresh seams. `kill` ends the process: the page cache stays, and
        the kernel resets connections. `fail_power` also loses what was not flushed, and tells no
        peer. `pause` and `resume` are SIGSTOP and SIGCONT. After a failed flush the page cache
        looks sound although no platter has the data: a kill then restarts the machine too, or the
        process alone (`DiskFaults.keeps_cache`).
Owns:   the hardware and the process.
Source: design section 10."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId
from strandline.simulation.disk.disk import CAPACITY_BYTES, FLUSH_US, HostDisk, SimDisk
from strandline.simulation.network.network import SimFabric, SimNetwork
from strandline.simulation.world.clock import HostClock, SimClock
from strandline.simulation.world.loop import SimLoop
from strandline.simulation.world.process import Process
from strandline.simulation.world.trace import Trace


@dataclass(frozen=True, slots=True)
class Seams:
    """What a program gets: the world of one process."""

    process: Process
    clock: SimClock
    disk: SimDisk
    network: SimNetwork
    rng: random.Random


Program = TypeVar("Program")


class SimHost(Generic[Program]):
    """See the module. `boot` makes the program and starts it; it runs inside the new process."""

    def __init__(
        self,
        broker: BrokerId,
        *,
        fabric: SimFabric,
        trace: Trace,
        rng: random.Random,
        drift_ppm: int = 0,
        flush_us: tuple[int, int] = FLUSH_US,
        disk_bytes: int = CAPACITY_BYTES,
        boot: Callable[[Seams], Program],
        on_created: Callable[[str], None] | None = None,
    ) -> None:
        """`on_created`: see `HostDisk`."""
        self.broker = broker
        self.name = f"broker {broker}"
        self.clock = HostClock(fabric.scheduler, drift_ppm=drift_ppm)
        self._fabric = fabric
        self._trace = trace
        self._rng = rng
        self._flush_us, self._disk_bytes = flush_us, disk_bytes
        self._boot = boot
        self._on_created = on_created
        self.disk = self._make_disk()
        self.process: Process | None = None
        self.program: Program | None = None
        self.start_count = 0
        self.disk_number = 1
        self.dies_of_power_failure = False
        """Whether a death in the middle of an operation on the disk is a power failure."""
        self.on_down: Callable[[], None] | None = None
        self._loop: SimLoop | None = None

    @property
    def is_up(self) -> bool:
        """Whether a process lives here, paused or not."""
        return self.process is not None

    @property
    def is_running(self) -> bool:
        """Whether a process lives here and runs."""
        return self.process is not None and not self.process.paused

    @property
    def loop_errors(self) -> list[str]:
        """What asyncio would have logged in the latest process."""
        return [] if self._loop is None else self._loop.errors

    def start(self) -> None:
        """Boot the program in a new process."""
        assert self.process is None
        self.start_count += 1
        process = Process(self._fabric.scheduler, self.name, on_death=self._on_death)
        self._loop = SimLoop(self._fabric.scheduler, process, self.clock)
        seams = Seams(
            process=process,
            clock=SimClock(self.clock, process),
            disk=SimDisk(self.disk, process),
            network=SimNetwork(self._fabric, process, self.broker),
            rng=random.Random(self._rng.getrandbits(64)),
        )
        self.process = process
        self._trace.add(self.name, f"starts (life {self.start_count})")

        def boot() -> None:
            seams.network.start()
            try:
                self.program = self._boot(seams)
            except (OSError, StorageError) as error:
                self._trace.add(self.name, f"cannot start: {error}")

        process.run_now(boot)
        if self.process is not None and self.program is None:
            self.kill()

    def kill(self) -> None:
        """End the process; what it wrote stays in the page cache."""
        if self.process is not None:
            self.dies_of_power_failure = False
            self.process.kill()

    def fail_power(self) -> None:
        """End the process and lose what was not flushed."""
        self.dies_of_power_failure = True
        if self.process is None:
            self._lose_power()
        else:
            self.process.kill()

    def lose_disk(self) -> None:
        """The power fails, and the machine gets an empty disk."""
        self.fail_power()
        self._trace.add(self.name, "gets an empty disk")
        self.disk = self._make_disk()
        self.disk_number += 1

    def pause(self) -> None:
        """Stop the process without its knowledge."""
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        if self.process is not None:
            self.process.resume()

    def _make_disk(self) -> HostDisk:
        rng = random.Random(self._rng.getrandbits(64))
        return HostDisk(
            self._fabric.scheduler,
            rng,
            flush_us=self._flush_us,
            capacity_bytes=self._disk_bytes,
            on_created=self._on_created,
        )

    def _on_death(self) -> None:
        """The process ended: from outside, or in the middle of an operation on its disk."""
        self.process = self.program = None
        if self._loop is not None:
            self._loop.close()
        if self.dies_of_power_failure:
            self._lose_power()
        else:
            self._trace.add(self.name, "is killed")
            self._fabric.process_died(self.broker, powered=True)
            if self.disk.has_failed_flush and self.disk.faults.keeps_cache:
                how = "half of it evicted" if self.disk.evict_some() else "all of it kept"
                self._trace.add(self.name, f"a flush had failed; the page cache stays, {how}")
            elif self.disk.has_failed_flush:
                self._trace.add(self.name, "is started anew, as a flush had failed")
                self.disk.crash()
        self.dies_of_power_failure = False
        self.disk.faults.die_at_operation = 0
        if self.on_down is not None:
            self.on_down()

    def _lose_power(self) -> None:
        self._fabric.process_died(self.broker, powered=False)
        style = self.disk.crash()
        self._trace.add(self.name, f"loses power; of what was not flushed, {style.value}")

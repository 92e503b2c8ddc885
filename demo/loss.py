"""The loss of a region in the middle of the stream, and its return.

How:    NOT YET --advance--> DOWN --outage over--> RETURNING --brokers serve--> OVER."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from demo.cluster import Cluster, DemoError, is_gone, kill_region, start_region
from demo.watch import LeaderWatch

OUTAGE_S = 8.0


class RegionLoss:
    """Kills the region that leads most partitions, watches the others take over, brings it back."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        *,
        say: Callable[[str], None],
        act: Callable[[str], None],
    ) -> None:
        self.is_over = False
        self._cluster = cluster
        self._watch = LeaderWatch(cluster, topic)
        self._say = say
        self._act = act
        self._region = ""
        self._killed_at = 0.0
        self._taken_over = False
        self._returning: Future[None] | None = None
        self._returning_since = 0.0
        self._pool = ThreadPoolExecutor(max_workers=1)

    def __enter__(self) -> "RegionLoss":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    def advance(self) -> None:
        """Does what is due now; called again and again."""
        if self.is_over:
            return
        if not self._region:
            self._kill()
        elif not self._taken_over:
            self._look_for_leaders()
        elif self._returning is not None:
            self._look_for_return(self._returning)
        elif time.monotonic() - self._killed_at > OUTAGE_S:
            self._say(f"   starting {self._region} again")
            self._returning_since = time.monotonic()
            self._returning = self._pool.submit(start_region, self._cluster.directory, self._region)

    def _kill(self) -> None:
        leads = self._watch.by_region()
        if not leads:
            raise DemoError("no broker names the leaders of the partitions")
        # Of several that lead as many, the one with the most brokers: the greater loss.
        self._region = max(leads, key=lambda one: (leads[one], len(self._cluster.in_region(one))))
        count = leads[self._region]
        brokers = ", ".join(map(str, self._cluster.in_region(self._region)))
        self._act(f"The region [red]{self._region}[/] goes dark")
        killing = self._pool.submit(kill_region, self._cluster.directory, self._region)
        self._killed_at = self._wait_dead(killing)
        self._say(
            f"   killed -9: brokers {brokers}, which led {count} of {leads.total()} partitions"
        )

    def _wait_dead(self, killing: "Future[None]") -> float:
        """The moment when the last process was gone; the command that kills takes longer."""
        brokers = self._cluster.in_region(self._region)
        pids = [self._cluster.brokers[number].pid for number in brokers]
        while not all(pid is None or is_gone(pid) for pid in pids):
            if killing.done():
                killing.result()
            time.sleep(0.005)
        died_at = time.monotonic()
        killing.result()
        return died_at

    def _look_for_leaders(self) -> None:
        dead = set(self._cluster.in_region(self._region))
        leaders = self._watch.leaders()
        if leaders and all(leader >= 0 and leader not in dead for leader in leaders.values()):
            self._taken_over = True
            took = time.monotonic() - self._killed_at
            self._say(f"   every partition is led from another region, {took:.1f} s after the kill")
        elif time.monotonic() - self._killed_at > 5 * OUTAGE_S:
            raise DemoError(f"no new leaders {5 * OUTAGE_S:.0f} s after the kill: {leaders}")

    def _look_for_return(self, returning: "Future[None]") -> None:
        if returning.done():
            returning.result()
            took = time.monotonic() - self._returning_since
            self._say(f"   {self._region} is back and serves, {took:.1f} s after its start")
            self.is_over = True

"""Rounds of attacks on one broker, and what has to hold while and after they last.

How:    each round draws one attack after the other; a watchdog asks all the time. Every so often,
        and at the end: the broker's memory is bounded, all secrets are as they were, and the files
        that it has open are as many as at first. No line of its log begins with what a client
        wrote, and no handler failed."""

import re
import time
from collections import Counter
from random import Random

from bench.clusters import memory_mb

from fuzz.hostile.cluster import SecureBroker
from fuzz.hostile.http_port import HTTP
from fuzz.hostile.logins import LOGINS
from fuzz.hostile.members import MEMBERS, Member
from fuzz.hostile.strangers import STRANGERS
from fuzz.hostile.tokens import TOKENS
from fuzz.hostile.watchdog import Watchdog
from fuzz.hostile.wire import FindingError
from fuzz.hostile.world import World

ATTACKS_PER_ROUND = 20
WARM_UP_ROUNDS = 20
GROWTH_MB_MAX = 96.0
DESCRIPTORS_MORE_MAX = 8
SETTLE_S = 45.0
BY_KIND = (STRANGERS, STRANGERS, LOGINS, TOKENS, HTTP, HTTP)
"""Attacks without a login, by the number that is drawn; above it, those of a member."""
_LINE = re.compile(r"time=\S+ level=\w+ broker=1 room=\w+ event=")
_FAILURE = re.compile(r".*(Traceback|cause id).*")


class HostileTarget:
    """See the module. `counts`: {attack: how often}."""

    def __init__(self, broker: SecureBroker) -> None:
        self.counts: Counter[str] = Counter()
        self._broker = broker
        self._world = World(broker)
        self._member = Member(self._world)
        self._state = broker.state()
        self._descriptors = broker.descriptors()
        self._watchdog = Watchdog(broker)
        self._watchdog.start()
        self._memory_mb = 0.0
        self._rounds = 0

    def round(self, random: Random) -> None:
        """Attacks of every kind. Raises FindingError."""
        for _ in range(ATTACKS_PER_ROUND):
            kind = random.randrange(10)
            if kind < 6:
                attack = random.choice(BY_KIND[kind])
                self._note(attack.__name__)
                attack(self._world, random)
            else:
                aimed = random.choice(MEMBERS)
                self._note(aimed.__name__)
                aimed(self._world, random, self._member)
        self._look()

    def finish(self) -> str:
        """What has to hold in the end; one line about the run. Raises FindingError."""
        self._world.release()
        self._member.close()
        self._watchdog.stop()
        _expect(not self._watchdog.failure, self._watchdog.failure)
        until = time.monotonic() + SETTLE_S
        while self._broker.descriptors() > self._descriptors + DESCRIPTORS_MORE_MAX:
            now = self._broker.descriptors()
            text = f"{now} files are open, {self._descriptors} were at first"
            _expect(time.monotonic() < until, text)
            time.sleep(0.5)
        state = self._broker.state()
        _expect(state == self._state, f"an attack changed: {self._state!r} to {state!r}")
        judge_log(self._broker.log())
        watchdog = self._watchdog
        return (
            f"{sum(self.counts.values())} attacks of {len(self.counts)} kinds; the administrator "
            f"asked {watchdog.count} times, and waited {watchdog.longest_ms:.0f} ms at most"
        )

    def _note(self, attack: str) -> None:
        self.counts[attack] += 1

    def _look(self) -> None:
        _expect(not self._watchdog.failure, self._watchdog.failure)
        self._rounds += 1
        if self._rounds % WARM_UP_ROUNDS:
            return
        judge_log(self._broker.log())
        memory = memory_mb(self._broker.pid)
        if self._rounds == WARM_UP_ROUNDS:
            self._memory_mb = memory
        grown = memory - self._memory_mb
        _expect(grown <= GROWTH_MB_MAX, f"the broker has {grown:.0f} MB more than at first")


def judge_log(text: str) -> None:
    """Every line of a broker's log is one of its own, and none tells of a handler that failed.
    Raises FindingError."""
    for line in text.splitlines():
        _expect(_LINE.match(line), f"a line of the log that is none: {line!r}")
        _expect(not _FAILURE.match(line), f"a handler failed: {line[:600]}")


def _expect(holds: object, what: str) -> None:
    """Raise FindingError unless something is so."""
    if not holds:
        raise FindingError(what)

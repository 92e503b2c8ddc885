"""The faults of access that a seed stands for: which, when, whom they concern, for how long.

Why:    they come beside the other faults, and must not change what a seed means without them.
How:    one after the other, at most one at a time.
Source: docs/operating/security.md, each way in which access changes."""

import random
from dataclasses import dataclass
from enum import Enum

from chaos.hosts import BROKER_IDS
from chaos.plan import CALM_MS

PAUSE_MS = (500, 3_000)
LENGTH_MS = (4_000, 10_000)
UNKNOWN_BROKER = 9
ROTATED = ("rd-east", "rd-west", "rd-south")
"""Users who get other passwords while their clients run."""


class AccessKind(Enum):
    """What is done."""

    RENEW = "renewal"
    ROTATE = "authority"
    PASSWORD = "password"
    RULE = "rule"
    IMPOSTOR = "impostor"
    FLOOD = "flood"


WEIGHTS = {
    AccessKind.RENEW: 3,
    AccessKind.ROTATE: 3,
    AccessKind.PASSWORD: 3,
    AccessKind.RULE: 4,
    AccessKind.IMPOSTOR: 2,
    AccessKind.FLOOD: 2,
}


@dataclass(frozen=True, slots=True)
class AccessFault:
    """One fault, in ms since the plan began. `broker`: whose certificate is renewed, or whom the
    impostor says it is; `user`: who gets another password."""

    begin_ms: int
    end_ms: int
    kind: AccessKind
    broker: int = 0
    user: str = ""

    def __str__(self) -> str:
        length_s = (self.end_ms - self.begin_ms) / 1000
        target = self.user or (f"broker {self.broker}" if self.broker else "")
        when = f"{self.begin_ms / 1000:7.1f} s  for {length_s:4.1f} s"
        return f"#a   {when}  {self.kind.value:<10} {target}".rstrip()


def draw_access(seed: int, *, duration_ms: int) -> tuple[AccessFault, ...]:
    """The same seed and duration, the same faults."""
    rng = random.Random(f"chaos {seed}, access")
    faults: list[AccessFault] = []
    at = CALM_MS
    while True:
        at += rng.randint(*PAUSE_MS)
        end = at + rng.randint(*LENGTH_MS)
        if end > duration_ms:
            return tuple(faults)
        (kind,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
        broker, user = 0, ""
        if kind is AccessKind.RENEW:
            broker = rng.choice(BROKER_IDS)
        elif kind is AccessKind.IMPOSTOR:
            broker = rng.choice((UNKNOWN_BROKER, rng.choice(BROKER_IDS)))
        elif kind is AccessKind.PASSWORD:
            user = rng.choice(ROTATED)
        faults.append(AccessFault(at, end, kind, broker, user))
        at = end

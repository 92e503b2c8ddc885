"""Two of the five brokers run an earlier release, as in the middle of a rolling upgrade.

Why:    while a cluster is upgraded, brokers of both releases lead, follow and elect each other.
How:    `--earlier` names a checkout of that release. Its sources run with the packages that are
        installed here. The seed says which two brokers; they keep their release to the end.
Owns:   nothing."""

import random
from dataclasses import dataclass
from pathlib import Path

from chaos.hosts import BROKER_IDS, ChaosError

EARLIER_COUNT = 2
SOURCES = "src"


@dataclass(frozen=True, slots=True)
class MixedReleases:
    """`checkout`: the earlier release's directory. `earlier`: brokers that run it."""

    checkout: Path
    earlier: frozenset[int]

    def environment_of(self, broker: int) -> dict[str, str]:
        """What the broker's process has in its environment, beside the run's own."""
        return {"PYTHONPATH": str(self.checkout / SOURCES)} if broker in self.earlier else {}

    def __str__(self) -> str:
        brokers = " and ".join(map(str, sorted(self.earlier)))
        return f"brokers {brokers} run the release of {self.checkout}"


def draw_mixed(seed: int, checkout: Path) -> MixedReleases:
    """Raises ChaosError if the directory is no checkout of a release."""
    checkout = checkout.resolve()
    if not (checkout / SOURCES / "strandline" / "cli" / "main.py").is_file():
        raise ChaosError(
            f"--earlier: no release in {checkout}; make one by: git worktree add {checkout} COMMIT"
        )
    rng = random.Random(f"chaos {seed}, releases")
    return MixedReleases(checkout, frozenset(rng.sample(BROKER_IDS, EARLIER_COUNT)))

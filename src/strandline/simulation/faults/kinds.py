"""The kinds of faults: one table, which the swarms, the scenario files and the reports read.

Why:    the list of faults is the list of what the product promises to survive.
How:    `faults` has the function that begins each kind.
Owns:   nothing.
Source: design section 10; reference/reliability.md 1c (Redpanda's chaos suite, to be matched)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`duration_ms`: (least, most) until it ends. `loses_page_cache`: unflushed writes may go."""

    duration_ms: tuple[int, int] = (50, 3_000)
    loses_page_cache: bool = False


FAULT_KINDS: dict[str, FaultKind] = {
    "kill": FaultKind(),
    "kill-leader": FaultKind(),
    "absence": FaultKind(duration_ms=(2_000, 7_000)),
    "power-failure": FaultKind(loses_page_cache=True),
    "leader-power-failure": FaultKind(loses_page_cache=True),
    "total-power-failure": FaultKind(loses_page_cache=True),
    "region-power-failure": FaultKind(loses_page_cache=True),
    "stop": FaultKind(),
    "lost-disk": FaultKind(loses_page_cache=True),
    "death-in-the-middle": FaultKind(loses_page_cache=True),
    "pause": FaultKind(),
    "wall-clock-jump": FaultKind(),
    "one-way-cut": FaultKind(duration_ms=(50, 12_000)),
    "cut-from-leader": FaultKind(),
    "isolation": FaultKind(duration_ms=(50, 5_000)),
    "mute": FaultKind(duration_ms=(50, 5_000)),
    "split": FaultKind(duration_ms=(50, 5_000)),
    "reset": FaultKind(),
    "slow-link": FaultKind(),
    "lossy-link": FaultKind(),
    "slow-disk": FaultKind(),
    "failed-flush": FaultKind(loses_page_cache=True),
    "full-disk": FaultKind(),
    "leadership-transfer": FaultKind(),
    "configuration-change": FaultKind(),
    "kill-all": FaultKind(duration_ms=(50, 1_000)),
    "black-hole": FaultKind(),
    "late-delivery": FaultKind(),
    "bit-rot": FaultKind(),
    "lying-disk": FaultKind(loses_page_cache=True),
    "rotten-tail": FaultKind(loses_page_cache=True),
    "open-rot": FaultKind(),
    "index-rot": FaultKind(),
    "journal-rot": FaultKind(loses_page_cache=True),
    "power-failure-rot": FaultKind(loses_page_cache=True),
    "region-cut": FaultKind(duration_ms=(300, 5_000)),
    "cut-between-regions": FaultKind(duration_ms=(300, 5_000)),
    "region-drill": FaultKind(),
    "zone-power-failure": FaultKind(loses_page_cache=True),
    "zone-kill": FaultKind(duration_ms=(300, 5_000)),
    "flapping-link": FaultKind(duration_ms=(500, 4_000)),
    "observer-death": FaultKind(duration_ms=(100, 4_000), loses_page_cache=True),
    "spare-disk-lost": FaultKind(loses_page_cache=True),
    "forgotten-fence": FaultKind(duration_ms=(3_000, 6_000), loses_page_cache=True),
    "early-report": FaultKind(duration_ms=(4_000, 7_000), loses_page_cache=True),
    "cut-after-shrink": FaultKind(duration_ms=(4_000, 7_000)),
    "late-fence": FaultKind(duration_ms=(4_000, 7_000)),
    "lasting-loss": FaultKind(duration_ms=(5_000, 9_000), loses_page_cache=True),
    "stalled-requests": FaultKind(duration_ms=(2_000, 4_000)),
    "lost-answers": FaultKind(duration_ms=(2_000, 4_000)),
    "client-reset": FaultKind(),
    "slow-bucket": FaultKind(duration_ms=(200, 4_000)),
    "bucket-gone": FaultKind(duration_ms=(200, 4_000)),
    "throttled-bucket": FaultKind(duration_ms=(200, 4_000)),
    "unclear-bucket": FaultKind(duration_ms=(200, 4_000)),
    "silent-bucket": FaultKind(duration_ms=(200, 4_000)),
    "late-bucket": FaultKind(duration_ms=(200, 4_000)),
    "stale-bucket": FaultKind(duration_ms=(200, 4_000)),
    "wrong-bucket": FaultKind(duration_ms=(200, 4_000)),
    "hiding-bucket": FaultKind(duration_ms=(200, 4_000)),
    "lost-objects": FaultKind(),
    "full-cache": FaultKind(duration_ms=(200, 4_000)),
}

DOMAIN_FAULTS = (
    "region-cut",
    "cut-between-regions",
    "zone-power-failure",
    "zone-kill",
    "flapping-link",
    "observer-death",
    "spare-disk-lost",
)
"""See `outage_swarm`."""
TARGETED_FAULTS = ("forgotten-fence", "early-report", "late-fence", "cut-after-shrink")
"""See `targeted_faults`."""
LASTING_LOSS = "lasting-loss"
"""See `lasting_losses`: an operator has to declare a loss."""
LATER_FAULTS = ("black-hole", "late-delivery", "stalled-requests", "bit-rot")
ROT_FAULTS = ("open-rot", "index-rot", "journal-rot", "power-failure-rot")
ANSWER_FAULTS = ("lost-answers", "client-reset")
"""See `variations`: planned beside all others, which stay as they were."""
BUCKET_KINDS = tuple(kind for kind in FAULT_KINDS if "bucket" in kind)
"""See `tiered_swarm`."""
DRAWN_APART = (
    *BUCKET_KINDS,
    "lost-objects",
    "full-cache",
    *LATER_FAULTS,
    *ROT_FAULTS,
    *ANSWER_FAULTS,
    *DOMAIN_FAULTS,
    *TARGETED_FAULTS,
    LASTING_LOSS,
    "absence",
    "lying-disk",
    "rotten-tail",
)
"""The last three, and `ROT_FAULTS`: see `variations`."""
BAD_DISKS = frozenset(
    {"bit-rot", "rotten-tail", "lying-disk", "open-rot", "journal-rot", "power-failure-rot"}
)
"""The kinds of faults that are about the disk of `rotting_broker`."""
ROT = frozenset({"bit-rot", "open-rot", "power-failure-rot"})
"""Those about closed segments, too."""

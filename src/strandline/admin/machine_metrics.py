"""Merges the metrics of a machine's brokers into one scrape.

How:    the text of each broker is taken apart by families; each sample gets the label `broker`, and
        the families of all brokers are put together again, because a family may stand in a scrape
        only once. A sample that has a label `broker` first names its own broker already
        (`strandline_broker_info`).
Owns:   one scrape's text.
Source: decision 0071; Prometheus, "Exposition formats" (0.0.4)."""

from dataclasses import dataclass, field

from strandline.admin.metric import Kind, Metric
from strandline.admin.pace import Pace

MACHINE_METRICS = (
    Metric(
        name="strandline_process_up",
        labels=("broker",),
        help="1 while the broker's process runs and answers its supervisor.",
    ),
    Metric(
        name="strandline_process_starts_total",
        labels=("broker",),
        help="How often the supervisor has started the broker's process.",
        kind=Kind.COUNTER,
    ),
)
"""One series for each broker, by the supervisor of `strandline serve --cores`."""
LABEL = "broker"
_LINES_PER_STEP = 200


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """What the supervisor knows of a broker's process."""

    is_up: bool
    starts: int


@dataclass(slots=True)
class _Family:
    """A metric with its samples of all brokers, as lines."""

    head: list[bytes] = field(default_factory=list)
    samples: list[bytes] = field(default_factory=list)


class MergedMetrics:
    """See the module. Takes one broker after the other."""

    def __init__(self) -> None:
        # {name: family}, in the order in which they came first.
        self._families: dict[bytes, _Family] = {}

    async def add(self, broker: int, text: bytes) -> None:
        """Take a broker's scrape, in slices."""
        pace = Pace()
        label = f'{LABEL}="{broker}"'.encode()
        family, heads = _Family(), False
        for number, line in enumerate(text.split(b"\n")):
            if number % _LINES_PER_STEP == 0:
                await pace.rest()
            if line.startswith(b"# "):
                family = self._families.setdefault(line.split(b" ", 3)[2], _Family())
                heads = len(family.head) < 2 and line not in family.head
                if heads:
                    family.head.append(line)
            elif line:
                family.samples.append(_labelled(line, label))

    def add_process(self, broker: int, figures: ProcessFigures) -> None:
        """Add what the supervisor knows of a broker."""
        values = (int(figures.is_up), figures.starts)
        for metric, value in zip(MACHINE_METRICS, values, strict=True):
            family = self._families.setdefault(metric.name.encode(), _Family())
            if not family.head:
                family.head = [
                    f"# HELP {metric.name} {metric.help_line}".encode(),
                    f"# TYPE {metric.name} {metric.kind}".encode(),
                ]
            family.samples.append(f'{metric.name}{{{LABEL}="{broker}"}} {value}'.encode())

    def blocks(self) -> list[bytes]:
        """The text, in parts."""
        return [
            b"\n".join([*family.head, *family.samples, b""]) for family in self._families.values()
        ]


def _labelled(sample: bytes, label: bytes) -> bytes:
    """A sample with one more label, which comes first."""
    space, brace = sample.find(b" "), sample.find(b"{")
    if brace < 0 or brace > space:
        return b"%b{%b}%b" % (sample[:space], label, sample[space:])
    if sample.startswith(b'broker="', brace + 1):
        return sample
    comma = b"" if sample[brace + 1 : brace + 2] == b"}" else b","
    return b"%b%b%b%b" % (sample[: brace + 1], label, comma, sample[brace + 1 :])

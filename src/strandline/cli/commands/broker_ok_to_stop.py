"""`strandline broker ok-to-stop`: whether brokers may stop together now.

Source: docs/reference/cli.md; docs/operating/brokers.md."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.exit_codes import UNHEALTHY
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import counted, ids, print_line, show
from strandline.cli.text.explaining import ranges

if TYPE_CHECKING:
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.stopping import Stop

TOPICS_SHOWN_MAX = 5


def ok_to_stop(
    brokers: Annotated[
        list[str], typer.Argument(metavar="ID...", help="The brokers that would stop together.")
    ],
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Say whether these brokers may stop together now, given which brokers are down or behind, and
    which partitions would lose acks=all, their leader, or every voter meanwhile. Changes nothing;
    the exit code is 0 for yes and 10 for no."""
    from strandline.base.errors import OperatorError
    from strandline.cli.text.stops import look_at_stops

    wanted = _ids(brokers)
    with open_client(bootstrap, timeout) as client:
        found = look_at_stops(client)
    unknown = sorted(set(wanted) - found.known)
    if unknown:
        raise OperatorError(f"no broker {unknown[0]} in this cluster")
    whole = found.stop(wanted)
    alone = [one for one in wanted if len(wanted) > 1 and found.stop([one]).is_ok]

    def people() -> None:
        for line in stop_lines(whole, alone):
            print_line(line)

    show(describe_stop(whole, alone), as_json=as_json, people=people)
    if not whole.is_ok:
        raise typer.Exit(UNHEALTHY)


def _ids(texts: "Sequence[str]") -> "list[BrokerId]":
    from strandline.base.errors import OperatorError
    from strandline.model.ids import BrokerId

    parts = [part for text in texts for part in text.split(",")]
    try:
        return sorted({BrokerId(int(part)) for part in parts})
    except ValueError:
        wrong = next(part for part in parts if not part.isdecimal())
        raise OperatorError(f"{wrong[:80]!r} is no broker ID: write 4, or 4 5") from None


def describe_stop(stop: "Stop", alone: "Sequence[BrokerId]") -> dict[str, Json]:
    """The same for programs."""
    return {
        "brokers": list(stop.brokers),
        "ok": stop.is_ok,
        "stops_controller": stop.stops_controller,
        "lacking": {what.value: list(names) for what, names in stop.lacking.items()},
        "appointed": list(stop.appointed),
        "ok_alone": list(alone),
    }


def stop_lines(stop: "Stop", alone: "Sequence[BrokerId]") -> list[str]:
    """The answer, and what says so."""
    noun = "broker" if len(stop.brokers) == 1 else "brokers"
    together = "" if len(stop.brokers) == 1 else " together"
    lines = [
        f"{'yes' if stop.is_ok else 'no'}: {noun} {ids(stop.brokers)} "
        f"{'may' if stop.is_ok else 'must not'} stop{together} now"
    ]
    if stop.stops_controller:
        lines.append("  the controller would have no majority: no topic or move could be decided")
    for what, names in stop.lacking.items():
        lines.append(f"  without {what.value}: {counted(len(names), 'partition')}: {_few(names)}")
    if stop.appointed:
        lines.append(
            "  after the controller appoints a leader or lets observers stand in: "
            f"{counted(len(stop.appointed), 'partition')}: {_few(stop.appointed)}"
        )
    if alone and not stop.is_ok:
        lines.append(f"  one at a time they may: {ids(alone)}")
    return lines


def _few(names: "Sequence[str]") -> str:
    """Partitions by their topics: `orders 0-3,7; payments 0`, and how many more topics."""
    indexes: dict[str, list[int]] = {}
    for name in names:
        topic, _, partition = name.rpartition("-")
        indexes.setdefault(topic, []).append(int(partition))
    shown = [f"{topic} {ranges(some)}" for topic, some in list(indexes.items())[:TOPICS_SHOWN_MAX]]
    more = len(indexes) - len(shown)
    return "; ".join(shown) + (f"; and {counted(more, 'more topic')}" if more else "")

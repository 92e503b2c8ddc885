"""Explanations of placements as text, for every command that shows some.

Why:    the same words for a described cluster and for an existing topic.
Source: decision 0008."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import Table, ids, print_line, print_table

if TYPE_CHECKING:
    from pathlib import Path

    from strandline.model.cluster import Roles
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.explanation import Explanation
    from strandline.placement.explain.latency import CommitLatency
    from strandline.placement.explain.prices import Prices
    from strandline.placement.explain.replicas import ReplicaReason
    from strandline.placement.policy.document import Goal
    from strandline.placement.survival.failures import FailureSets
    from strandline.placement.survival.report import Survival
    from strandline.placement.topology.universe import Candidate

SETS_SHOWN_MAX = 3
RANGES_SHOWN_MAX = 12
BROKERS_SHOWN_MAX = 12
NOTHING = "nothing"
NOT_SAID = "?"
"""A domain without a label, as `survival.replicas.format_domain` writes it."""


def builtins(value: object) -> Json:
    """A struct of explanations as a JSON value."""
    import msgspec

    return msgspec.to_builtins(value, builtin_types=())  # type: ignore[no-any-return]


def read_prices(file: "Path | None") -> "Prices | None":
    """The price table in a file; raises OperatorError."""
    from strandline.cli.server.broker_file import read_file
    from strandline.placement.explain.prices import decode_prices

    return None if file is None else decode_prices(read_file(file), source=str(file))


def check_prices(
    prices: "Prices | None", file: "Path | None", brokers: "Iterable[Candidate]"
) -> None:
    """Refuse prices of links between regions that there are not; raises OperatorError."""
    from strandline.placement.explain.prices import require_links

    if prices is not None:
        require_links(prices, [one.labels.region for one in brokers], source=str(file))


def goals(found: "Iterable[Goal]") -> str:
    """Losses that are survived: `1 region, or 2 brokers`."""
    from strandline.placement.policy.goals import format_goal

    return ", or ".join(map(format_goal, found)) or NOTHING


def losses_survived(found: "Sequence[Goal]", but_not: "Sequence[Goal]") -> str:
    """`1 region, but not 1 broker`: losses that are survived, and smaller ones that are not."""
    return f"{goals(found)}, but not {goals(smallest(but_not))}" if but_not else goals(found)


def where(broker: "Candidate") -> str:
    """The path of a broker: `east/a`, or `-`."""
    labels = broker.labels
    path = "/".join(part for part in (labels.region, labels.zone, labels.rack, labels.host) if part)
    return path or "-"


def state_of(broker: "Candidate") -> str:
    """What may be asked of a broker: `active`, `down`, `being decommissioned, down`."""
    state = broker.state.value
    return state if broker.is_up or state == "down" else f"{state}, down"


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers for people: `0-3,7`, and how many more there are."""
    numbers = sorted(numbers)
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = found[:RANGES_SHOWN_MAX]
    more = len(numbers) - sum(b - a + 1 for a, b in shown)
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in shown) or "-"
    return f"{text} and {more} more" if more else text


def partitions_named(numbers: Sequence[int]) -> str:
    """`partition 3`, `partitions 0-2,5`."""
    return f"partition{'' if len(numbers) == 1 else 's'} {ranges(numbers)}"


def roles(some: "Roles") -> str:
    """Voters, and observers where there are any: `1,2,3 +4`."""
    text = ids(some.voters)
    return f"{text} +{ids(some.observers)}" if some.observers else text


def few(brokers: "Sequence[BrokerId]") -> str:
    """Broker ids as `output.ids`, the first of them, and how many more there are."""
    more = len(brokers) - BROKERS_SHOWN_MAX
    return f"{ids(brokers[:BROKERS_SHOWN_MAX])} and {more} more" if more > 0 else ids(brokers)


def tell_replicas(
    told: "Explanation",
    brokers: "Mapping[BrokerId, Candidate]",
    *,
    title: str,
    behind: "Collection[BrokerId]" = (),
) -> None:
    """Print where each replica is, which brokers are as good, and which were refused."""
    has_better = any(one.better for one in told.replicas)
    rows: list[tuple[str | int, ...]] = []
    for one in told.replicas:
        broker = brokers[one.broker]
        state = "" if broker.state.value == "active" else f", {state_of(broker)}"
        state = ", behind" if not state and one.broker in behind else state
        better = [few(one.better)] if has_better else []
        rows.append(
            (one.broker, one.role + state, where(broker), few(one.equal), *better, _refused(one))
        )
    heads = ("BROKER", "ROLE", "WHERE", "AS GOOD", *(["BETTER"] if has_better else []), "NOT")
    print_table(Table(title=title, heads=heads, rows=rows, right=frozenset(("BROKER",))))


def _refused(one: "ReplicaReason") -> str:
    """Brokers that may not have the replica, and why. Leaves out brokers with another replica,
    and the broker that has it, whose faults are printed elsewhere."""
    told = []
    for group in one.refused:
        others = [broker for broker in group.brokers if broker != one.broker]
        if others and group.reason.code != "taken":
            told.append(f"{few(others)}: {group.reason}")
    return "; ".join(told) or "-"


def tell_ways(told: "Explanation") -> None:
    """What a write waits for, what crosses, and what that costs, by leader."""
    costs = {one.leader: f"{one.per_gb} {one.currency}" for one in told.costs}
    waits, waits_now = _waits(told.latencies), _waits(told.latencies_now)
    is_changed = told.now is not None and bool(told.latencies)
    rows: list[tuple[str | int, ...]] = [
        (
            one.leader,
            waits.get(one.leader, "-"),
            *([waits_now.get(one.leader, "-")] if is_changed else []),
            one.cross_region,
            one.cross_zone,
            costs.get(one.leader, "-"),
        )
        for one in told.traffic
    ]
    now = ("NOW",) if is_changed else ()
    heads = ("LEADER", "A WRITE WAITS", *now, "COPIES TO REGIONS", "TO ZONES", "PER GB")
    right = frozenset(("LEADER", "COPIES TO REGIONS", "TO ZONES"))
    print_table(Table(heads=heads, rows=rows, right=right))


def _waits(latencies: "Sequence[CommitLatency]") -> "dict[BrokerId, str]":
    return {one.leader: milliseconds(one.commit_ms) for one in latencies}


def milliseconds(measured: int | None) -> str:
    """A round trip; brokers measure whole milliseconds."""
    if measured is None:
        return "not measured"
    return f"{measured} ms" if measured else "under 1 ms"


def tell_failures(survival: "Survival") -> None:
    """The smallest sets of losses that stop writes or lose data, level by level."""
    levels = {one.level: one.domains for one in survival.levels}
    rows = [
        (stop.level, levels[stop.level], _sets(stop, levels), _sets(lose, levels))
        for stop, lose in zip(survival.stopping, survival.losing, strict=True)
    ]
    print_table(
        Table(
            heads=("LOSS OF", "OF", "STOPS WRITES", "MAY LOSE ACKNOWLEDGED WRITES"),
            rows=rows,
            right=frozenset(("OF",)),
        )
    )


def _sets(found: "FailureSets", levels: Mapping[str, int]) -> str:
    if not found.size:
        return "already"
    if found.count == comb(levels[found.level], found.size):
        return f"any {found.size}"
    shown = " or ".join(
        "+".join("brokers without the label" if name == NOT_SAID else name for name in one)
        for one in found.sets[:SETS_SHOWN_MAX]
    )
    more = found.count - min(found.count, SETS_SHOWN_MAX)
    return f"{shown}, and {more} more sets of {found.size}" if more else shown


def tell_survival(
    writes: "Sequence[Goal]",
    data: "Sequence[Goal]",
    *,
    but_not: "Sequence[Goal]" = (),
    before: str = "",
    further: str = "",
) -> None:
    """Print which losses writes and data survive; `before` starts each line. `but_not`: smaller
    losses than those of `writes`, which stop writes."""
    for line in survival_lines(writes, data, but_not=but_not, before=before, further=further):
        print_line(line)


def survival_lines(
    writes: "Sequence[Goal]",
    data: "Sequence[Goal]",
    *,
    but_not: "Sequence[Goal]" = (),
    before: str = "",
    further: str = "",
) -> list[str]:
    """The same as lines."""
    lines = [f"{before}some writes stop with the {further}loss of one replica"]
    if writes:
        found = losses_survived(writes, but_not)
        lines = [f"{before}writes continue after the {further}loss of {found}"]
    if data:
        return [
            *lines,
            f"{before}no acknowledged write is lost with the {further}loss of {goals(data)}",
        ]
    some = "some acknowledged writes may be lost"
    return [*lines, f"{before}{some} with the {further}loss of one replica"]


def smallest(found: "Sequence[Goal]") -> "list[Goal]":
    """The losses that imply no other of these."""
    from strandline.placement.survival.report import implies

    return [
        goal for goal in found if not any(other != goal and implies(goal, other) for other in found)
    ]

"""`strandline policy test --topic`: what a policy would move of an existing topic.

Source: docs/reference/cli.md; docs/operating/placement.md."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from strandline.base.json_value import Json
from strandline.cli.output import Table, counted, ids, print_line, print_more, print_table, show

if TYPE_CHECKING:
    from strandline.cli.text.moves import LeaderChange, TopicMoves
    from strandline.client.cluster import Client
    from strandline.controller.balancer.preview import Step
    from strandline.model.cluster import Roles
    from strandline.model.ids import BrokerId
    from strandline.placement.explain.copies import Copy, CopyCost, Slowest
    from strandline.placement.explain.topics import TopicExplanation
    from strandline.placement.policy.document import Policy

MOVES_SHOWN_MAX = 30
CHANGES_SHOWN_MAX = 10


def preview_topic(client: "Client", name: str, policy: "Policy", *, as_json: bool) -> None:
    """Print what this policy would change; changes nothing."""
    from dataclasses import replace

    from strandline.cli.text.explaining import builtins
    from strandline.cli.text.moves import look_at_moves
    from strandline.cli.text.policy_notes import notes_on
    from strandline.placement.explain.topics import explain_topic
    from strandline.placement.policy.text import encode_policy

    text = encode_policy(policy)
    found = look_at_moves(client, name, text)
    request = replace(found.topic.request, policy=policy, default_voters=len(found.after[0].voters))
    notes = notes_on(policy, found.cluster.candidates)
    told = explain_topic(request, found.cluster.candidates, found.after, rules=found.rules)
    show(
        {
            "topic": name,
            "policy": text,
            "paused": found.is_paused,
            "whole": found.preview.is_whole,
            "moves": [_move_json(step, copies) for step, copies in found.steps],
            "cost": builtins(found.cost),
            "leaders": [
                {"partition": one.partition, "before": one.before, "after": one.after}
                for one in found.leaders
            ],
            "replicas": [list(one.voters + one.observers) for one in found.after],
            "observers": [list(one.observers) for one in found.after],
            "waits": [
                {"reason": code, "text": text, "partitions": one.count}
                for (code, text), one in found.preview.waits.found.items()
            ],
            "others_move": found.others,
            "notes": notes,
            "provisos": list(found.provisos),
            "writes": builtins(told.writes),
            "data": builtins(told.data),
        },
        as_json=as_json,
        people=lambda: _tell(found, told, policy, notes),
    )


def _move_json(step: "Step", copies: "Iterable[Copy]") -> Json:
    from strandline.cli.text.explaining import builtins

    return {
        "partition": step.partition,
        "before": list(step.before.all),
        "after": list(step.after.all),
        "observers_before": list(step.before.observers),
        "observers_after": list(step.after.observers),
        "reason": step.code,
        "copies": [builtins(one) for one in copies],
    }


def _tell(
    found: "TopicMoves", told: "TopicExplanation", policy: "Policy", notes: "Iterable[str]"
) -> None:
    from strandline.cli.text.explaining import tell_survival
    from strandline.cli.text.policy_notes import tell_notes

    print_line(f"topic {found.topic.name} with placement.policy {told.policy}:")
    tell_notes(notes)
    if found.is_paused:
        print_line("paused: nothing starts until you resume the balancer")
    _tell_cost(found)
    _tell_leaders(found.leaders, follows=bool(policy.leaders.follow))
    for (code, text), one in found.preview.waits.found.items():
        noun = "partition waits" if one.count == 1 else "partitions wait"
        print_line(f"{code}: {text}; {one.count} {noun} ({', '.join(one.examples)})")
    if found.others:
        noun = "partition" if found.others == 1 else "partitions"
        print_line(f"also, {found.others} {noun} of other topics would move")
    if not found.preview.is_whole:
        print_line("incomplete: more would move than this preview shows")
    for proviso in found.provisos:
        print_line(f"assumption: {proviso}")
    tell_survival(told.writes, told.data, but_not=told.writes_but_not, before="then, ")
    if found.steps:
        print_line("")
        _tell_steps(found)


def _tell_cost(found: "TopicMoves") -> None:
    moving = {step.partition for step, _ in found.steps if not step.before.is_alike(step.after)}
    if not moving:
        print_line("no replica moves")
        return
    cost = found.cost
    print_line(
        f"{counted(len(moving), 'partition')} would change replicas; "
        f"{counted(cost.copies, 'copy')}, {_amount(cost)}"
    )
    if cost.slowest is not None:
        print_line(_throttle(cost.slowest))


def _throttle(one: "Slowest") -> str:
    from strandline.placement.explain.amounts import format_bytes, format_seconds

    limit = one.limit
    if one.seconds is None:
        return f"no copies while {limit.key} is 0"
    who = "all brokers send"
    if limit.source is not None:
        who = f"broker {limit.source} sends"
    elif limit.target is not None:
        who = f"broker {limit.target} takes"
    where = {None: "", True: " to other regions", False: " within its region"}[limit.crosses]
    least = "at least " if one.seconds >= 1 else ""
    return (
        f"{least}{format_seconds(one.seconds)} at the current throttle: {who} "
        f"{format_bytes(one.bytes)}{where} at {format_bytes(limit.bytes_per_s)}/s ({limit.key})"
    )


def _amount(cost: "CopyCost") -> str:
    from strandline.placement.explain.amounts import format_bytes

    text = f"{format_bytes(cost.bytes)}, {format_bytes(cost.cross_region_bytes)} of it to other "
    text += "regions"
    if cost.unknown:
        text += f", and {counted(cost.unknown, 'copy')} of unknown size"
    return text


def _tell_leaders(changes: "Iterable[LeaderChange]", *, follows: bool) -> None:
    from strandline.cli.text.explaining import ranges

    by_pair: dict[tuple[int, int], list[int]] = {}
    for one in changes:
        by_pair.setdefault((one.before, one.after), []).append(one.partition)
    if not by_pair:
        print_line("no leader changes")
        return
    pairs = Counter({pair: len(some) for pair, some in by_pair.items()}).most_common()
    shown = [
        f"{'none' if before < 0 else before} -> {after}: {ranges(by_pair[before, after])}"
        for (before, after), _ in pairs[:CHANGES_SHOWN_MAX]
    ]
    more = len(pairs) - CHANGES_SHOWN_MAX
    text = "; ".join(shown) + (f"; and {more} more pairs" if more > 0 else "")
    total = sum(count for _, count in pairs)
    print_line(f"{counted(total, 'leader')} would change: {text}")
    if follows:
        print_line("then leaders follow the writers")


def _tell_steps(found: "TopicMoves") -> None:
    from strandline.cli.text.explaining import ranges, roles
    from strandline.placement.explain.amounts import format_bytes

    alike: dict[tuple[Roles, Roles, str, int], list[int]] = {}
    sizes: Counter[tuple[object, ...]] = Counter()
    for step, copies in found.steps:
        source = copies[0].source if copies else -1
        key = (step.before, step.after, step.code, source)
        alike.setdefault(key, []).append(step.partition)
        sizes[key] += sum(one.bytes or 0 for one in copies)
    rows = [
        (
            ranges(partitions),
            roles(before),
            roles(after),
            _ways(source, [one for one in after.all if one not in before.all]),
            format_bytes(sizes[before, after, code, source]),
            code,
        )
        for (before, after, code, source), partitions in list(alike.items())[:MOVES_SHOWN_MAX]
    ]
    print_table(
        Table(
            heads=("PARTITIONS", "REPLICAS", "BECOME", "COPIED", "BYTES", "WHY"),
            rows=rows,
            right=frozenset(("BYTES",)),
        )
    )
    print_more(len(alike) - MOVES_SHOWN_MAX)


def _ways(source: int, targets: "list[BrokerId]") -> str:
    return f"{source} to {ids(targets)}" if targets else "-"

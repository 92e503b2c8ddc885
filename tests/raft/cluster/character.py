"""What a schedule is like: its cluster, its network, and how often what happens.

Why:    an even mixture of all faults hides mistakes that need several of one kind in a row.
How:    the seed modulo four says what a schedule dwells on; from a million on it is leadership
        handed over among many, from two millions on votes that were promised for that, while the
        promises are forgotten, abandoned, late and in vain, from three millions on entries that
        followers lend each other, from four millions on write quorums that are made smaller while
        members change, from five millions on appends that followers hand on, mostly of what is
        not committed; the rest is drawn.
Owns:   nothing."""

import random
from dataclasses import dataclass, replace

import msgspec

from strandline.raft.group.configuration import Configuration

FOCUSES = ("anything", "elections", "members", "disks")
HANDING_OVER_SEED = 1_000_000
DELEGATING_SEED = 2_000_000
PEER_CATCHUP_SEED = 3_000_000
LOWERING_SEED = 4_000_000
RELAYING_SEED = 5_000_000


def focus_of(seed: int) -> str:
    """What the schedule of a seed dwells on."""
    if seed >= RELAYING_SEED:
        return "relays"
    if seed >= LOWERING_SEED:
        return "write quorums"
    if seed >= PEER_CATCHUP_SEED:
        return "lending"
    if seed >= DELEGATING_SEED:
        return "delegators"
    return "transfers" if seed >= HANDING_OVER_SEED else FOCUSES[seed % len(FOCUSES)]


@dataclass(frozen=True)
class Character:
    """Chances are per message or effect; weights are relative, {action of `Trouble`: weight}."""

    node_count: int
    configuration: Configuration
    step_count: int
    drop_chance: float
    keep_chance: float
    reorder: float
    unflushed_visible_chance: float
    crash_chance: float
    loses_power: bool
    patience_steps: int
    round_steps: int
    wipe_count: int
    weights: dict[str, float]
    peer_catchup_chance: float = 0.0
    relay_chance: float = 0.0


def draw_character(rng: random.Random, seed: int) -> Character:
    """The character that belongs to a seed."""
    focus = focus_of(seed)
    if focus == "transfers":
        return _draw_transfers(rng)
    if focus == "delegators":
        return _draw_delegations(rng)
    if focus == "lending":
        return _draw_peer_catchup(rng)
    if focus == "relays":
        return _draw_relaying(rng)
    if focus == "write quorums":
        return _draw_lowering(rng)
    is_any = focus == "anything"
    voter_count = rng.choice((1, 2, 3, 3, 4, 5) if is_any else (3, 3, 3, 4, 5))
    spare_count = rng.randint(1, 3) if focus == "members" else rng.randint(0, 2)
    node_count = min(6, voter_count + spare_count)
    voters = tuple(range(1, voter_count + 1))
    observers = tuple(range(voter_count + 1, node_count + 1)) if rng.random() < 0.5 else ()
    can_wipe = voter_count >= 2 and (focus == "disks" or (is_any and rng.random() < 0.3))
    return Character(
        node_count=node_count,
        configuration=Configuration(voters, (), observers, rng.choice((1, 1, 2, 2, 3))),
        step_count=rng.choice((100, 200, 400)),
        drop_chance=rng.choice((0.0, 0.03, 0.15)),
        keep_chance=rng.choice((0.0, 0.05, 0.2)),
        reorder=rng.choice((1.0, 2.0, 4.0)),
        unflushed_visible_chance=rng.choice((0.0, 0.0, 0.5)),
        crash_chance=rng.choice((0.0, 0.002, 0.01)),
        loses_power=rng.random() < 0.8,
        patience_steps=rng.choice((3, 10, 20)),
        round_steps=rng.choice((5, 15, 30)),
        wipe_count=1 if can_wipe else 0,
        weights={
            "deliver": 40,
            "flush": rng.choice((6, 15, 25)),
            "propose": rng.choice((3, 8)),
            "time_out": rng.choice((2, 5)),
            "contact": rng.choice((0.5, 2)),
            "reset_peer": rng.choice((1, 4)),
            "unseat": rng.choice((3, 5)) if focus == "elections" else rng.choice((0, 1, 2)),
            "lose_quorum": rng.choice((0, 0.5)),
            "crash": rng.choice((1, 3)) if focus == "elections" else rng.choice((0, 0.5, 1.5)),
            "restart": rng.choice((4, 10)),
            "cut": rng.choice((0, 0.5, 1)),
            "heal": rng.choice((1, 3)),
            "transfer": rng.choice((0, 1)),
            "abandon": 0.5,
            "change": rng.choice((2, 6)) if focus == "members" else rng.choice((0, 1)) * is_any,
            "retain": rng.choice((0, 0.7)),
            "wipe": (1.0 if focus == "disks" else 0.4) * can_wipe,
        },
    )


def _draw_transfers(rng: random.Random) -> Character:
    """Four voters or more: the heir needs votes beside that of who hands over."""
    voter_count = rng.choice((4, 5, 5))
    node_count = voter_count + rng.randint(0, 1)
    return Character(
        node_count=node_count,
        configuration=Configuration(tuple(range(1, voter_count + 1)), (), (), rng.choice((1, 2))),
        step_count=rng.choice((200, 400)),
        drop_chance=rng.choice((0.0, 0.03)),
        keep_chance=rng.choice((0.05, 0.2)),
        reorder=rng.choice((1.0, 1.0, 2.0)),
        unflushed_visible_chance=rng.choice((0.0, 0.5)),
        crash_chance=rng.choice((0.0, 0.002)),
        loses_power=rng.random() < 0.5,
        patience_steps=rng.choice((3, 10)),
        round_steps=rng.choice((5, 15)),
        wipe_count=rng.choice((0, 0, 1)),
        weights={
            "deliver": 40,
            "flush": rng.choice((15, 25)),
            "propose": rng.choice((3, 8)),
            "time_out": rng.choice((2, 5)),
            "contact": rng.choice((0.5, 2)),
            "reset_peer": rng.choice((0, 1)),
            "unseat": rng.choice((0, 1)),
            "crash": rng.choice((0, 0.5)),
            "restart": rng.choice((4, 10)),
            "cut": rng.choice((0, 0.5)),
            "heal": 3,
            "transfer": rng.choice((3, 10)),
            "abandon": rng.choice((0.5, 3)),
            "go_on": rng.choice((0, 0.5, 3)),
            "change": rng.choice((0, 0, 1)),
            "wipe": rng.choice((0, 0.4)),
        },
    )


def _draw_delegations(rng: random.Random) -> Character:
    """Five voters; leaders seldom go on without promises, heirs are stopped."""
    node_count = 5 + rng.randint(0, 1)
    return Character(
        node_count=node_count,
        configuration=Configuration((1, 2, 3, 4, 5), (), (), rng.choice((1, 2))),
        step_count=rng.choice((150, 300)),
        drop_chance=rng.choice((0.0, 0.0, 0.03)),
        keep_chance=rng.choice((0.05, 0.2)),
        reorder=rng.choice((1.0, 1.5)),
        unflushed_visible_chance=rng.choice((0.0, 0.5)),
        crash_chance=rng.choice((0.0, 0.002)),
        loses_power=rng.random() < 0.7,
        patience_steps=rng.choice((3, 10)),
        round_steps=rng.choice((5, 15)),
        wipe_count=rng.choice((0, 0, 1)),
        weights={
            "deliver": 40,
            "flush": rng.choice((15, 25)),
            "propose": rng.choice((4, 12)),
            "time_out": rng.choice((4, 10)),
            "contact": rng.choice((0.5, 2)),
            "reset_peer": rng.choice((0, 1)),
            "unseat": rng.choice((0, 0, 1)),
            "lose_quorum": rng.choice((0, 0.3)),
            "crash": rng.choice((0, 0.5)),
            "restart": 10,
            "heal": 3,
            "transfer": rng.choice((0, 1, 5)),
            "strand": rng.choice((1, 3, 6)),
            "orphan": rng.choice((2, 8)),
            "resume": rng.choice((1, 2)),
            "abandon": rng.choice((0, 0.5, 3)),
            "go_on": rng.choice((0, 0, 0.3)),
            "change": rng.choice((0, 0, 0, 1)),
            "wipe": rng.choice((0, 0.4, 1)),
        },
    )


def _draw_peer_catchup(rng: random.Random) -> Character:
    """Followers that are behind again and again, and logs that part."""
    voter_count = rng.choice((3, 3, 4, 5))
    node_count = voter_count + rng.randint(0, 2)
    voters = tuple(range(1, voter_count + 1))
    return Character(
        node_count=node_count,
        configuration=Configuration(
            voters, (), tuple(range(voter_count + 1, node_count + 1)), rng.choice((1, 1, 2))
        ),
        step_count=rng.choice((200, 400)),
        drop_chance=rng.choice((0.0, 0.03, 0.15)),
        keep_chance=rng.choice((0.0, 0.05, 0.2)),
        reorder=rng.choice((1.0, 2.0, 4.0)),
        unflushed_visible_chance=rng.choice((0.0, 0.5)),
        crash_chance=rng.choice((0.0, 0.002, 0.01)),
        loses_power=rng.random() < 0.8,
        patience_steps=rng.choice((3, 10)),
        round_steps=rng.choice((5, 15)),
        wipe_count=rng.choice((0, 1)),
        weights={
            "deliver": 40,
            "lend": rng.choice((2, 8)),
            "flush": rng.choice((15, 25)),
            "propose": rng.choice((3, 8)),
            "time_out": rng.choice((2, 5)),
            "contact": rng.choice((0.5, 2)),
            "reset_peer": rng.choice((1, 4)),
            "unseat": rng.choice((0, 1, 4)),
            "crash": rng.choice((0, 0.5, 1.5)),
            "restart": rng.choice((4, 10)),
            "cut": rng.choice((0.5, 1, 2)),
            "heal": rng.choice((1, 3)),
            "transfer": rng.choice((0, 1)),
            "abandon": 0.5,
            "change": rng.choice((0, 0, 1)),
            "retain": rng.choice((0, 0.7)),
            "wipe": rng.choice((0, 0.4)),
        },
        peer_catchup_chance=rng.choice((0.3, 0.6, 0.9)),
    )


def _draw_lowering(rng: random.Random) -> Character:
    """As members that change; all voters, or nearly all, make up the write quorum."""
    members = draw_character(rng, FOCUSES.index("members"))
    configuration = msgspec.structs.replace(members.configuration, min_insync=rng.choice((3, 4, 5)))
    more = {"lower": rng.choice((2, 6)), "crash": rng.choice((0.5, 1.5))}
    return replace(members, configuration=configuration, weights=members.weights | more)


def _draw_relaying(rng: random.Random) -> Character:
    """As lending, with more that is written: what is handed on comes late, and twice."""
    peer_catchup = _draw_peer_catchup(rng)
    more = {"propose": rng.choice((8, 15)), "unseat": rng.choice((1, 4)), "transfer": 1}
    return replace(
        peer_catchup,
        keep_chance=rng.choice((0.05, 0.2)),
        peer_catchup_chance=rng.choice((0.0, 0.0, 0.3)),
        relay_chance=rng.choice((0.3, 0.6, 0.9)),
        weights=peer_catchup.weights | more,
    )

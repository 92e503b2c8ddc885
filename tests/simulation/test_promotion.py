"""Observers stand in for voters, and leave again, through faults: nothing acknowledged is lost.

Source: docs/decisions/0025-promotion.md; design section 6."""

import logging
import random
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest
from tests.simulation.test_acting import FAULTS, FIVE, on_five_brokers

from strandline.broker import acting, arbitrating
from strandline.controller import promotion
from strandline.placement.policy.document import Promotion
from strandline.simulation.scenario import Scenario
from strandline.simulation.scenario_file import load_scenario
from strandline.simulation.swarm import run_scenario

SCENARIO = Path(__file__).parent / "scenarios" / "observers-stand-in-for-a-region.toml"
SEEDS = (5, 19, 21, 24)
POLICIES: tuple[Promotion, ...] = ("under-min-isr", "under-replicated", "region-lost")


def promoting(seed: int, faults: Collection[str] = FAULTS) -> Scenario:
    """Five brokers; groups of two or three voters, and one or two observers that stand in."""
    drawn = Scenario.draw(seed).whole()
    rng = random.Random(f"promoting {seed}")
    groups = []
    for plan in drawn.groups:
        hosts = rng.sample(FIVE, rng.choice((3, 4, 5)))
        count = rng.choice((2, 2, 3) if len(hosts) > 3 else (2,))
        voters, observers = tuple(hosts[:count]), tuple(hosts[count:])
        groups.append(
            replace(
                plan,
                voters=voters,
                observers=observers,
                hosts=tuple(hosts),
                min_insync=rng.choice((1, 2, count)),
                promotion=rng.choice(POLICIES),
            )
        )
    return on_five_brokers(drawn, groups, rng, faults=faults, active_ms=16_000)


@pytest.mark.simulation
def test_observers_stand_in_for_a_region_and_leave_when_it_is_back() -> None:
    """Both examples of Confluent's, one group each, under load, with a consumer group."""
    outcome = run_scenario(load_scenario(SCENARIO), log_level=logging.INFO)
    assert outcome.violation is None
    told = [line.partition("-0: ")[0][-7:] + " " + word for line, word in steps(outcome.trace)]
    assert [one for one in told if one.startswith("group-1")] == [
        "group-1 promote",
        "group-1 demote",
        "group-1 promote",
        "group-1 demote",
    ]
    assert [one for one in told if one.startswith("group-2")] == [
        "group-2 promote",
        "group-2 promote",
        "group-2 demote",
        "group-2 hand-over",
        "group-2 demote",
    ]


def steps(trace: Collection[str]) -> list[tuple[str, str]]:
    """(line, first word of what it says) of what is done about observers."""
    found = []
    for line in trace:
        word = line.partition("-0: ")[2].partition(" ")[0]
        if word in ("promote", "demote", "hand-over"):
            found.append((line, word))
    return found


def hurry(patch: pytest.MonkeyPatch) -> None:
    """All that waits for a while waits for half a second, so that roles change all the time."""
    for module, name in (
        (acting, "SILENT_MS"),
        (acting, "RETURN_MS"),
        (arbitrating, "STUCK_MS"),
        (promotion, "DEMOTE_MS"),
        (promotion, "HANDOVER_RETRY_MS"),
    ):
        patch.setattr(module, name, 500)


@pytest.mark.simulation
def test_observers_stand_in_and_leave_through_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    outcomes = [run_scenario(promoting(seed), log_level=logging.INFO) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    words = {word for outcome in outcomes for _, word in steps(outcome.trace)}
    assert {"promote", "demote"} <= words

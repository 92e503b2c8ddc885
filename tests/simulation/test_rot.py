"""Rot without a kill, and rot of what lies beside the logs: found, mended, never served.

Source: reliability reference 3; `replication/repair/log_repair.py`;
        `storage/state_journal.py`."""

import logging

import pytest
from tests.simulation.scenario_checks import kept, scenario_of

from strandline.simulation.disk.file_image import FileImage
from strandline.simulation.swarm.swarm import run_scenario
from strandline.storage.recovery.scrubbing import Scrub

PLACES = ("groups", "whole-brokers")


def told(name: str) -> list[str]:
    """The trace of a run that keeps every promise."""
    return kept(name).trace


@pytest.mark.simulation
@pytest.mark.parametrize("place", PLACES)
def test_rot_under_an_open_log_is_found_by_the_scrub_and_mended(place: str) -> None:
    trace = told(f"rot-under-open-logs-of-{place}")
    assert any(" rots" in line for line in trace)
    assert any("damaged in" in line for line in trace)
    assert any("repaired offsets" in line for line in trace)


@pytest.mark.simulation
def test_without_the_scrub_nobody_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page cache has what the platter has lost, and lets go of nothing."""
    monkeypatch.setattr(Scrub, "step", lambda self, bytes_max: 0)
    monkeypatch.setattr(FileImage, "forget_cached", lambda self, position, length: None)
    scenario = scenario_of("rot-under-open-logs-of-groups")
    outcome = run_scenario(scenario, log_level=logging.INFO)
    assert outcome.violation is not None
    assert outcome.violation.startswith("DamageMended: broker")
    assert any(" rots" in line for line in outcome.trace)
    assert not any("damaged in" in line for line in outcome.trace)


@pytest.mark.simulation
@pytest.mark.parametrize("place", PLACES)
def test_rot_beside_segments_costs_nothing(place: str) -> None:
    trace = told(f"rotten-indexes-of-{place}")
    assert any(".summary rots" in line or "index rots" in line for line in trace)
    assert not any("cannot start" in line or "stays closed" in line for line in trace)
    assert not any("empty disk" in line for line in trace)


@pytest.mark.simulation
@pytest.mark.parametrize("place", PLACES)
def test_a_broker_does_not_start_with_a_journal_that_rots(place: str) -> None:
    """Whom it voted for, nobody knows any more: it returns as one that lost its disk."""
    trace = told(f"rotten-journal-of-{place}")
    assert any("cannot start" in line and "state.journal" in line for line in trace)
    assert any("gets an empty disk" in line for line in trace)


def test_what_rots_on_the_platter_is_read_once_the_cache_lets_go_of_it() -> None:
    image = FileImage()
    image.write(0, [b"abcd"])
    image.flush_up_to(image.sequence)
    image.flip_bit_below(8)
    assert image.current.read(4, 0) == b"abcd"
    image.forget_cached(2, 2)
    assert image.current.read(4, 0) == b"abcd"
    image.write(3, [b"D"])
    image.forget_cached(0, 4)
    assert image.current.read(4, 0) == b"abcD", "what is not flushed is kept"
    image.flush_up_to(image.sequence)
    image.forget_cached(0, 4)
    assert image.current.read(4, 0) == b"accD"

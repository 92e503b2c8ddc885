"""Which tests run in the fast lane (`make test`), and which in the long one (`make test-long`).

Why:    everything a change can break is tested once within minutes. Many seeds of one course, and
        every combination of a client with a fault, find what is rare: they have a lane of their
        own, of which each submission runs a share.
How:    a test is long if it is marked so (`@pytest.mark.long`), if a row of LONG names it, or if
        its seed is not among the first ones of its course. The rows are one table so that the whole
        division is seen at once; a test checks that each row names a test.
Source: HACKING, "Tests"; docs/internals/test-times.md."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

SEED = "seed"
SEEDS_FAST = {"tests/simulation/": 1, "tests/raft/": 2}
"""So many seeds of each course are in the fast lane, where one costs a second: {room: seeds}."""


@dataclass(frozen=True, slots=True)
class Row:
    """Tests whose name begins with `prefix`: all but the first `fast` of each function are long."""

    prefix: str
    fast: int
    why: str


REAL, BESIDE = "tests/integration/", "over the simulated network tests/broker/"
SIM, SOUND = "tests/simulation/", "the same course with the mistake is in the other test"
RARE = "`make test` draws new seeds of the brief swarm; each submission draws some of outages"
LONG: tuple[Row, ...] = (
    Row("tests/chaos/test_run.py", 0, "a minute of real faults; tests/integration has each kind"),
    Row(
        "tests/broker/test_balancing.py::test_a_broker_that_returns_while",
        2,
        "6 stages; 2 are fast",
    ),
    Row("tests/broker/test_cuts_between_voters.py::test_where_one_way", 1, "one of four is fast"),
    Row("tests/broker/test_declared_losses_by_seed.py", 1, "one seed is fast"),
    Row("tests/broker/test_failback.py::test_a_few_go_back", 0, "one goes back in the other tests"),
    Row("tests/broker/test_moving_replicas.py::test_who_dies_at_any", 8, "24 stages; 8 are fast"),
    Row("tests/broker/test_observers.py::test_an_observer_is_replaced", 6, "20 stages; 6 are fast"),
    Row("tests/broker/test_promised_write_quorums.py::test_a_link_that_flaps", 0, RARE),
    Row("tests/controller/balancer/test_random_histories.py", 15, "40 histories; 15 are fast"),
    Row(
        "tests/raft/test_explorer.py::test_every_schedule",
        4,
        "small scopes; `make explore` has all",
    ),
    Row("tests/raft/test_explorer.py::test_random_walks_beyond", 1, "one of two walks is fast"),
    Row("tests/raft/test_explorer.py::test_states_that_differ", 1, "one of three scopes is fast"),
    Row("tests/raft/test_explorer_declaring.py::test_states_that", 1, "one of three is fast"),
    Row("tests/raft/test_schedules.py::test_all_invariants", 8, "8 of 20 blocks are fast"),
    Row("tests/raft/test_explorer.py::test_a_broken_rule", 6, "six of eighteen rules are fast"),
    Row(f"{REAL}test_balancing.py::test_a_lost_broker", 0, BESIDE + "test_balancing.py"),
    Row(
        f"{REAL}test_broker_life.py",
        0,
        BESIDE + "test_maintenance.py, tests/broker/test_disk_room.py",
    ),
    Row(f"{REAL}test_broker_life.py::test_a_broker_is_emptied", 1, "one of its page is fast"),
    Row(f"{REAL}test_declared_losses.py", 0, BESIDE + "test_declared_losses.py"),
    Row(f"{REAL}test_disk_relief.py", 0, BESIDE + "test_disk_relief.py"),
    Row(f"{REAL}test_drill.py::test_the_cut_ends_by_itself", 0, "tests/broker/test_isolation.py"),
    Row(f"{REAL}test_drill.py::test_what_is_foretold", 0, "tests/cli/test_drill.py"),
    Row(
        f"{REAL}test_explain.py::test_an_outage_is_explained", 0, "tests/placement/test_outcomes.py"
    ),
    Row(f"{REAL}test_fewer_voters.py", 0, BESIDE + "test_voter_reconciliation.py"),
    Row(f"{REAL}test_following.py", 0, BESIDE + "test_following.py"),
    Row(f"{REAL}test_full_disk.py", 1, "both kinds of reserved space; one is fast"),
    Row(f"{REAL}test_held_producers.py::test_a_leader", 0, "the socket is held in the other test"),
    Row(f"{REAL}test_labelling.py", 0, BESIDE + "test_labelling.py"),
    Row(
        f"{REAL}test_metrics.py::test_brokers_are_scraped_while",
        0,
        "tests/admin/test_exposition.py",
    ),
    Row(
        f"{REAL}test_moving_replicas.py::test_copies_are_throttled",
        0,
        BESIDE + "test_copy_budget.py",
    ),
    Row(f"{REAL}test_outages.py::test_what_was_said", 0, BESIDE + "test_outages.py"),
    Row(f"{REAL}test_policy_preview.py", 1, "every policy; one is fast"),
    Row(f"{REAL}test_promotion.py::test_the_tutorial", 0, "test_a_data_centre_is_killed is fast"),
    Row(f"{REAL}test_reading_near.py", 1, "every client; librdkafka is fast"),
    Row(f"{REAL}test_unregistering.py", 0, BESIDE + "test_unregistering.py"),
    Row(f"{REAL}test_zones.py", 0, BESIDE + "test_outages.py"),
    Row(f"{SIM}test_leaving_voters.py::test_a_planted_mistake", 0, "tests/raft/test_explorer.py"),
    Row(f"{SIM}test_balancing.py::test_a_planted_mistake", 1, "one of each kind is fast"),
    Row(f"{SIM}test_balancing.py::test_brokers_are_", 0, BESIDE + "test_maintenance.py"),
    Row(
        f"{SIM}test_balancing.py::test_bytes_that_are_copied", 0, "the invariant without a mistake"
    ),
    Row(f"{SIM}test_balancing.py::test_full_disks", 0, BESIDE + "test_disk_relief.py"),
    Row(
        f"{SIM}test_balancing.py::test_in_half_an_hour",
        0,
        "tests/controller/outages/test_judging.py",
    ),
    Row(f"{SIM}test_balancing.py::test_moves_for_a_broker", 0, "the invariant without a mistake"),
    Row(
        f"{SIM}test_balancing.py::test_under_load_on", 0, "tests/controller/outages/test_judging.py"
    ),
    Row(f"{SIM}test_compaction.py::test_a_planted_mistake", 1, "one of two is fast"),
    Row(f"{SIM}test_cut_cables.py::test_beside_all", 0, RARE),
    Row(f"{SIM}test_drawn_damage.py::test_a_planted_mistake", 1, "one of six is fast"),
    Row(f"{SIM}test_each_invariant.py::test_without_the_mistake", 0, SOUND),
    Row(f"{SIM}test_lost_answers.py::test_no_producer", 0, RARE),
    Row(
        f"{SIM}test_lost_answers.py::test_whatever_is_not",
        3,
        "every kind of answer; three are fast",
    ),
    Row(f"{SIM}test_lost_answers.py::test_where_answers", 0, "the swarm's draws, counted"),
    Row(f"{SIM}test_observers.py::test_topics_with_observers", 0, RARE),
    Row(f"{SIM}test_outage_swarm.py::test_a_planted_mistake", 2, "two of seventeen are fast"),
    Row(f"{SIM}test_outage_swarm.py::test_a_small_block", 0, RARE),
    Row(f"{SIM}test_outage_swarm.py::test_without_the_mistake", 0, SOUND),
    Row(f"{SIM}test_promised_write_quorums.py::test_a_planted_mistake", 1, "one of two is fast"),
    Row(f"{SIM}test_promotion.py::test_grants_that_wait", 0, RARE),
    Row(f"{SIM}test_promotion.py::test_observers_stand_in_and_leave", 0, RARE),
    Row(f"{SIM}test_relay_swarm.py", 0, "tests/simulation/test_relays.py has each fault once"),
    Row(f"{SIM}test_returning_region.py::test_where_nobody_relays", 0, "the measure itself"),
    Row(f"{SIM}test_swarm.py::test_a_planted_mistake", 8, "eight of 31 are fast"),
    Row(f"{SIM}test_swarm.py::test_without_the_mistake", 0, SOUND),
    Row(f"{SIM}test_brief_swarm.py::test_a_small_block", 0, RARE),
    Row(f"{SIM}test_transfers.py::test_who_dies_during", 24, "94 moments; 24 are fast"),
    Row(f"{SIM}test_variations.py::test_every_promise", 2, "every variation; two are fast"),
    Row("tests/spark/test_reading_near.py", 0, "the lake job reads the same way"),
    Row("tests/spark/test_submit.py", 0, "the lake job runs in one process; this one in two"),
)
MARK = pytest.mark.long


def mark(items: Sequence[pytest.Item]) -> None:
    """Mark what belongs to the long lane."""
    places: dict[str, int] = defaultdict(int)
    seeds: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for item in items:
        function = function_of(item.nodeid)
        row = row_of(function)
        place = places[function]
        places[function] += 1
        if row is not None:
            if place >= row.fast:
                item.add_marker(MARK)
        elif not _is_an_early_seed(item, function, seeds):
            item.add_marker(MARK)


def row_of(function: str) -> Row | None:
    """The row of a test function; the one that names it most exactly."""
    rows = [row for row in LONG if function.startswith(row.prefix)]
    return max(rows, key=lambda row: len(row.prefix), default=None)


def function_of(nodeid: str) -> str:
    """`tests/a.py::test_b[1]` -> `tests/a.py::test_b`."""
    return nodeid.partition("[")[0]


def _is_an_early_seed(
    item: pytest.Item, function: str, seeds: dict[tuple[str, str], set[Any]]
) -> bool:
    """Whether the item has no seed, or one of the first of its course."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    fast = next((count for room, count in SEEDS_FAST.items() if function.startswith(room)), None)
    if SEED not in parameters or fast is None:
        return True
    others = str({name: str(value) for name, value in parameters.items() if name != SEED})
    early = seeds[function, others]
    if len(early) < fast:
        early.add(parameters[SEED])
    return parameters[SEED] in early

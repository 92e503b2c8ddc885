"""A plan's numbers depend on its seed, and on nothing about who ran it."""

from tests.pipeline.plan.described import cluster_of, plan_of

from strandline.pipeline.plan.assumptions import Assumptions
from strandline.pipeline.plan.results import results_of
from strandline.pipeline.plan.runs import run_here
from strandline.pipeline.plan.trials import chunks, encode, run_trials

PLAN = plan_of(cluster_of(3, zones=2, brokers=2), ["rf3", "2+2+1o"], Assumptions())


def test_rows_are_the_same_however_trials_are_shared_out() -> None:
    whole = run_here(PLAN, 24)
    blob = encode(PLAN)
    by_one = [row for each in range(24) for row in run_trials(blob, [each])]
    backwards = [row for part in reversed(chunks(24, 5)) for row in run_trials(blob, part)]
    assert whole == by_one == sorted(backwards, key=lambda row: row.trial)
    assert results_of(PLAN, whole) == results_of(PLAN, by_one)


def test_two_processes_give_what_one_gives() -> None:
    seen: list[int] = []
    assert run_here(PLAN, 24, processes=2, on_progress=seen.append) == run_here(PLAN, 24)
    assert seen[-1] == 24 and seen == sorted(seen)


def test_another_seed_is_another_history() -> None:
    other = plan_of(cluster_of(3, zones=2, brokers=2), ["rf3", "2+2+1o"], Assumptions(), seed=8)
    assert run_here(PLAN, 4) != run_here(other, 4)


def test_chunks_are_all_trials_once() -> None:
    for trials in (1, 7, 100):
        for count in (1, 3, 16, 200):
            assert [one for part in chunks(trials, count) for one in part] == [*range(trials)]


def test_so_many_losses_are_so_many_years() -> None:
    a_year = PLAN.losses_a_year()
    assert PLAN.trials_for(100_000) == -int(-100_000 // a_year)
    assert PLAN.trials_for(1) == 20

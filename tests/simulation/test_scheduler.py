"""Virtual time moves from event to event, in one order."""

from strandline.simulation.world.process import Process, ProcessDied
from strandline.simulation.world.scheduler import Scheduler


def test_events_run_in_the_order_of_time_and_then_of_asking() -> None:
    scheduler = Scheduler()
    seen: list[str] = []
    scheduler.at(20, lambda: seen.append("late"))
    scheduler.at(10, lambda: seen.append("first asked"))
    scheduler.at(10, lambda: seen.append("second asked"))
    scheduler.run_until(15)
    assert seen == ["first asked", "second asked"]
    assert scheduler.now_us == 15
    scheduler.run_until(100)
    assert seen[-1] == "late"


def test_an_event_made_at_a_moment_runs_after_those_that_wait_for_that_moment() -> None:
    scheduler = Scheduler()
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        scheduler.after(0, lambda: seen.append("made by first"))

    scheduler.at(10, first)
    scheduler.at(10, lambda: seen.append("second"))
    scheduler.run_until(10)
    assert seen == ["first", "second", "made by first"]


def test_a_cancelled_event_does_not_run() -> None:
    scheduler = Scheduler()
    seen: list[int] = []
    event = scheduler.at(10, lambda: seen.append(1))
    event.cancel()
    scheduler.run_until(10)
    assert seen == []
    assert not scheduler.step()


def test_a_wait_for_a_condition_ends_at_its_limit() -> None:
    scheduler = Scheduler()
    seen: list[int] = []
    scheduler.at(10, lambda: seen.append(1))
    assert scheduler.run_until_true(lambda: bool(seen), limit_us=50)
    assert scheduler.now_us == 10
    assert not scheduler.run_until_true(lambda: len(seen) > 1, limit_us=50)
    assert scheduler.now_us == 50


def test_a_paused_process_does_everything_late_and_in_order() -> None:
    scheduler = Scheduler()
    process = Process(scheduler, "one")
    seen: list[tuple[str, int]] = []
    process.at(10, lambda: seen.append(("a", scheduler.now_us)))
    process.at(20, lambda: seen.append(("b", scheduler.now_us)))
    process.pause()
    scheduler.run_until(30)
    assert seen == []
    scheduler.at(40, process.resume)
    process.at(40, lambda: seen.append(("c", scheduler.now_us)))
    scheduler.run_until(50)
    assert seen == [("a", 40), ("b", 40), ("c", 40)]


def test_a_killed_process_does_nothing_any_more() -> None:
    scheduler = Scheduler()
    deaths: list[int] = []
    process = Process(scheduler, "one", on_death=lambda: deaths.append(scheduler.now_us))
    process.at(10, lambda: deaths.append(-1))
    process.pause()
    scheduler.run_until(20)
    process.kill()
    process.kill()
    process.resume()
    process.at(30, lambda: deaths.append(-1))
    scheduler.run_until(40)
    assert deaths == [20]


def test_a_blocking_call_delays_what_comes_after_it() -> None:
    scheduler = Scheduler()
    process = Process(scheduler, "one")
    seen: list[tuple[str, int]] = []
    process.at(10, lambda: process.charge(100))
    process.at(10, lambda: seen.append(("next", scheduler.now_us)))
    process.at(50, lambda: seen.append(("later", scheduler.now_us)))
    scheduler.run_until(200)
    assert seen == [("next", 110), ("later", 110)]


def test_a_process_can_die_in_the_middle_of_a_callback() -> None:
    scheduler = Scheduler()
    process = Process(scheduler, "one")
    seen: list[str] = []

    def work() -> None:
        seen.append("begun")
        try:
            raise process.die_now()
        except Exception:
            seen.append("survived")
        seen.append("finished")

    process.at(10, work)
    process.at(20, lambda: seen.append("more"))
    scheduler.run_until(30)
    assert seen == ["begun"]
    assert not process.alive
    assert issubclass(ProcessDied, BaseException)
    assert not issubclass(ProcessDied, Exception)

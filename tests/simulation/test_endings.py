"""What is awaited once the faults are over is a promise like the others: each speaks up by itself.

Source: design section 10 (Progress)."""

import pytest

from strandline.model.ids import BrokerId, GroupId
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.endings import (
    BalancerProgress,
    Convergence,
    DamageMended,
    HeartbeatsCoalesced,
    Progress,
)
from strandline.simulation.invariants.facts import (
    NOWHERE,
    BalanceAwaited,
    DamageAwaited,
    IdlePassed,
    RestAwaited,
    ServiceAwaited,
    Subject,
)
from strandline.simulation.invariants.invariants import InvariantError

ONE = Subject(GroupId(1))


def test_a_group_that_takes_no_write_is_found() -> None:
    Progress().on_service_awaited(ServiceAwaited("", 30_000, ONE))
    with pytest.raises(InvariantError, match=r"^Progress: group-1 took no write within 30000 ms"):
        Progress().on_service_awaited(ServiceAwaited("group-1 took no write", 30_000, ONE))


def test_what_the_balancer_leaves_undone_is_found() -> None:
    BalancerProgress().on_balance_awaited(BalanceAwaited("", 30_000))
    with pytest.raises(InvariantError, match=r"^BalancerProgress: t-0 moves, 30000 ms after"):
        BalancerProgress().on_balance_awaited(BalanceAwaited("t-0 moves", 30_000))


def test_what_does_not_come_to_rest_is_found() -> None:
    Convergence().on_rest_awaited(RestAwaited(""))
    with pytest.raises(InvariantError, match=r"^Convergence: group-1 is led by") as found:
        Convergence().on_rest_awaited(RestAwaited("group-1 is led by [1, 2]", ONE))
    assert found.value.subject == ONE


def test_damage_that_nobody_mends_is_found() -> None:
    DamageMended().on_damage_awaited(DamageAwaited("", 9))
    with pytest.raises(InvariantError, match=r"^DamageMended: broker 1 has damage in x, 9 ms"):
        DamageMended().on_damage_awaited(DamageAwaited("broker 1 has damage in x", 9, ONE))


def test_a_group_that_sends_something_of_its_own_is_found() -> None:
    """A heartbeat and two answers each way in an interval, and no append."""
    way, back = (BrokerId(1), BrokerId(2)), (BrokerId(2), BrokerId(1))

    def idle(control: int, bulk: int) -> IdlePassed:
        return IdlePassed(500, 100, {way: control, back: control}, {way: bulk})

    HeartbeatsCoalesced().on_idle_passed(idle(18, 0))
    with pytest.raises(InvariantError, match=r"^HeartbeatsCoalesced: at rest: 19 messages from 1"):
        HeartbeatsCoalesced().on_idle_passed(idle(19, 0))
    with pytest.raises(InvariantError, match=r"^HeartbeatsCoalesced: at rest: 1 appends from 1"):
        HeartbeatsCoalesced().on_idle_passed(idle(18, 1))


def test_the_checker_hands_on_what_was_awaited() -> None:
    def verdict(
        *, served: str = "", balance: str = "", rest: str = "", damage: str = ""
    ) -> tuple[object, Subject]:
        checker = Checker(
            idempotent_producers=(),
            power_fails=False,
            has_leader_acks=False,
            resend_timeout_ms=1_000,
        )
        checker.service_awaited(ServiceAwaited(served, 1, ONE))
        checker.balance_awaited(BalanceAwaited(balance, 1))
        checker.rest_awaited(RestAwaited(rest, ONE))
        checker.damage_awaited(DamageAwaited(damage, 1, ONE))
        return checker.violation, checker.subject

    assert verdict() == (None, NOWHERE)
    assert verdict(served="nobody") == ("Progress: nobody within 1 ms after the last fault", ONE)
    assert verdict(balance="much") == (
        "BalancerProgress: much, 1 ms after the last fault",
        NOWHERE,
    )
    assert verdict(rest="noise") == ("Convergence: noise", ONE)
    assert verdict(damage="rot") == ("DamageMended: rot, 1 ms after all was at rest", ONE)

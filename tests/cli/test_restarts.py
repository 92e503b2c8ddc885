"""Which of the planned restarts may be made now.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

import pytest

from strandline.base.errors import OperatorError
from strandline.cli.restarts import Restarts
from strandline.model.ids import BrokerId
from strandline.placement.survival.restarts import QuorumGroup, Unit, plan_restarts

ALL = frozenset(map(BrokerId, (1, 2, 3)))
UNITS = [Unit(f"broker {one}", frozenset((one,))) for one in sorted(ALL)]
GROUP = QuorumGroup(name="t-0", voters=ALL, quorum=2, ready=ALL)


def restarts(*spared: int) -> Restarts:
    plan = plan_restarts(UNITS, [GROUP])
    return Restarts(plan, (GROUP,), ALL, frozenset(map(BrokerId, spared)))


def test_one_at_a_time() -> None:
    now, later = restarts().now([])
    assert [one.name for one in now] == ["broker 1"]
    assert [(one.name, why) for one, why in later] == [
        ("broker 2", "in a later step"),
        ("broker 3", "in a later step"),
    ]


def test_who_is_in_maintenance_is_the_one_to_restart() -> None:
    now, later = restarts(2).now([])
    assert [one.name for one in now] == ["broker 2"]
    why = "t-0 needs 2 of brokers 1, 2, 3; in maintenance: 2"
    assert [(one.name, text) for one, text in later] == [
        ("broker 1", why),
        ("broker 3", why),
    ]


def test_a_name_that_is_not_in_the_plan_is_refused() -> None:
    with pytest.raises(OperatorError, match="broker 1, broker 2, broker 3"):
        restarts().now(["broker 9"])

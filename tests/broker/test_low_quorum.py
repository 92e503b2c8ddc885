"""The controller raises an alarm where acks=all is refused, also if voters may not leave.

Source: design section 8."""

import logging

import pytest
from tests.broker.moving_world import TOPIC, moving_world
from tests.broker.test_broker_in_a_cluster import produce

from strandline.protocol.errors import Error

HOME = (3, 4, 5)
CONFIGS = (("min.insync.replicas", "3"),)


def test_the_controller_tells_where_acks_all_is_refused_though_nobody_may_leave(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    with moving_world(monkeypatch, HOME, configs=CONFIGS) as world:
        world.until(lambda: len(world.acked) > 0)
        lost = next(one for one in (4, 5) if one != world.leader_of(TOPIC))

        def alarms() -> list[str]:
            return [one for one in caplog.messages if one.startswith("low-quorum")]

        world.hosts[lost].kill()
        world.until(lambda: bool(alarms()))
        assert produce(world, TOPIC, b"refused").error_code == Error.NOT_ENOUGH_REPLICAS
        world.hosts[lost].start()
        world.until_started(lost)
        world.until(lambda: len(alarms()) == 2)
        assert alarms() == [
            (
                "low-quorum: acks=all writes are rejected: fewer voters are in sync than "
                "min.insync.replicas requires: 1 partition, moved-0"
            ),
            "low-quorum: acks=all writes are accepted everywhere",
        ]
        assert produce(world, TOPIC, b"taken").error_code == Error.NONE
        world.finish(*HOME)

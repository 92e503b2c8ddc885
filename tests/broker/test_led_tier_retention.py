"""What the leader retires and deletes where a bucket or a time does not help.

Source: decision 0059."""

import pytest
from tests.broker.test_led_tier import BUCKETS, HOUR_MS, World, run
from tests.storage.log_world import World as LogWorld

from strandline.broker.tiering.tier_context import TierPlan
from strandline.tiered.objects.store import StoreError
from strandline.tiered.state.commands import Forget, Retire

NO_TIMES = {"none": -1, "far ahead": 1 << 60}


@pytest.mark.parametrize("timestamp", NO_TIMES.values(), ids=NO_TIMES)
def test_records_without_a_time_are_as_old_as_their_object(timestamp: int) -> None:
    async def scenario(world: World) -> None:
        for _ in range(40):
            world.log_world.append(1, timestamp=timestamp)
        world.log.config = LogWorld(retention_ms=HOUR_MS).config
        await world.run(world.is_live)
        await world.settle()
        assert world.of(Retire) == []
        world.log.config = LogWorld(retention_ms=0).config
        await world.run(lambda: not any(world.tier.state.live(one) for one in BUCKETS))
        await world.run(lambda: len(world.of(Forget)) == 2)

    run(scenario)


def test_a_bucket_that_does_not_delete_is_left_alone_for_a_while() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        await world.run(world.is_live)
        asked: list[str] = []

        def refuse(operation: str, name: str) -> None:
            if operation == "delete":
                asked.append(name)
                raise StoreError("503")

        world.stores["east"].fail = refuse
        world.recheck_ms = HOUR_MS
        world.plan = TierPlan(is_deleting_all=True)
        await world.run(lambda: asked)
        count = len(asked)
        for _ in range(30):
            world.fill(3)
            await world.settle()
        assert len(asked) == count

    run(scenario)

"""Hands over what this broker leads while it is in maintenance; ends maintenance that has expired.

Why:    a broker that is about to be stopped should lead nothing. And an operator who forgets that
        a broker is in maintenance should not find it idle a year later.
How:    Each second, if this broker is in maintenance, its replicas let others stand for election
        first, and each group led here goes to an in-sync replica on a broker that is not in
        maintenance. Without such a replica the group stays.
            The active controller removes maintenance that has passed its time.
Owns:   its timer, and whether the replicas here let others stand first.
Source: docs/decisions/0011-the-life-of-a-broker.md."""

import logging
from collections.abc import Collection
from functools import partial

from strandline.base.errors import ApiError
from strandline.broker.context import Services
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.config.broker_life import MAINTENANCE, BrokerLife
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceType,
)
from strandline.controller.decision import maintained_of
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER, BrokerId

LOOK_INTERVAL_MS = 1_000
TRANSFERS_PER_LOOK_MAX = 100
ASK_TIMEOUT_MS = 5_000

_log = logging.getLogger("strandline.broker")


def first_to_lead(partition: Partition, maintained: Collection[BrokerId]) -> BrokerId:
    """The broker that elections favour: of the first replica whose broker is not in maintenance."""
    return next((one for one in partition.replicas if one not in maintained), partition.replicas[0])


class Draining:
    """See the module."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._replication = services.replication
        self._controller = services.controller
        self._was_maintained = False
        self._ticker = Ticker(
            services.clock,
            self._look,
            interval_ms=LOOK_INTERVAL_MS,
            log=_log,
            failure="cannot hand over the partitions led here",
        )
        self._asking = SingleFlight()

    def start(self) -> None:
        """Begin to look."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._asking.stop()

    def _look(self) -> None:
        self._drain()
        self._end_what_is_over()

    def _drain(self) -> None:
        maintained = maintained_of(self._controller.cluster)
        is_maintained = self._replication.self_id in maintained
        if not is_maintained and not self._was_maintained:
            return
        self._was_maintained = is_maintained
        for replica in self._replication.replicas.values():
            replica.is_spared = is_maintained
        if not is_maintained:
            return
        room = TRANSFERS_PER_LOOK_MAX
        for replica in list(self._replication.led.all):
            if not room:
                return
            if replica.configuration.is_joint:
                continue
            to = replica.hand_over(maintained)
            if to != NO_BROKER:
                room -= 1
                _log.info("%s: in maintenance: handing over to broker %d", replica.name, to)

    # ---- where this broker is the controller -----------------------------------------------------

    def _end_what_is_over(self) -> None:
        if not self._controller.is_active or self._asking.is_under_way:
            return
        now_ms = self._clock.wall_ms()
        over = [
            ResourceChanges(
                ResourceType.BROKER,
                str(broker),
                (ConfigChange(MAINTENANCE, ConfigOperation.DELETE),),
            )
            for broker, values in self._controller.cluster.broker_configs.items()
            if 0 < BrokerLife.from_values(values).broker_maintenance_until_ms <= now_ms
        ]
        if over:
            self._asking.begin(partial(self._end, AlterConfigs(tuple(over))))

    async def _end(self, command: AlterConfigs) -> None:
        try:
            await self._controller.submit(command, timeout_ms=ASK_TIMEOUT_MS)
            names = ", ".join(one.name for one in command.resources)
            _log.info("maintenance of brokers %s has expired and is ended", names)
        except ApiError as error:
            _log.info("cannot end maintenance that has expired, trying again: %s", error)

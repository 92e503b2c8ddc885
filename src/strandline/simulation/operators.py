"""An operator who changes policies of topics, and labels of brokers, takes brokers away, for good
or for a while, and puts something else on their disks, at planned moments.

Why:    the balancer moves replicas when these change; they change while everything else goes wrong.
How:    a key, or a label at run time, is set by a request to any broker, again and again until one
        says that it is set. A broker whose configuration says another label is killed and started
        anew.
Owns:   what is left to do.
Source: docs/decisions/0010-the-balancer.md and 0015-labels-at-run-time.md; design section 10."""

import random
from functools import partial
from typing import TYPE_CHECKING

from strandline.config.broker_life import DECOMMISSION, MAINTENANCE, NO_END
from strandline.config.keys import format_value
from strandline.controller.commands import ConfigOperation, ResourceType
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.protocol.messages.alter_broker_labels import (
    AlterBrokerLabelsRequest,
    AlterBrokerLabelsResponse,
    LabelChange,
)
from strandline.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from strandline.simulation.broker_member import ALTER_CONFIGS_VERSION, BrokerMember
from strandline.simulation.clients import Client
from strandline.simulation.scenario import PlannedChange
from strandline.simulation.scheduler import US_PER_MS

if TYPE_CHECKING:
    from strandline.simulation.member import Member
    from strandline.simulation.world import World

AGAIN_MS = 500
ALTER_LABELS_VERSION = 0
POLICY = "placement.policy"

NOT_SPARED = 0

Resource = tuple[ResourceType, str, str]
"""What has configuration, by its name, and the key."""
Wanted = Resource | BrokerId
"""A key, or the region of a broker."""


class Operator(Client):
    """See the module."""

    def __init__(self, name: str, world: "World", rng: random.Random) -> None:
        super().__init__(name, world, rng)
        self._wanted: dict[Wanted, str] = {}
        """{what: the value that it shall have, and is not known to have}"""
        self._is_asking = False

    def start(self) -> None:
        """Begin."""
        for change in self.world.scenario.changes:
            self.world.scheduler.after(change.at_ms * US_PER_MS, partial(self._change, change))

    @property
    def is_done(self) -> bool:
        """Whether all is set."""
        return not self._wanted

    def unlike(self, cluster: Cluster) -> str:
        """A broker that is not in the region that was said last; empty where there is none.

        Only of those that were said at run time, once: an attempt that was given up may still be
        carried out, and none but the last would be known to be the last."""
        for broker in self.world.scenario.brokers:
            said = [one for one in self.world.scenario.changes if one.broker == broker]
            regions = [one.region for one in said if one.at_run_time]
            if len(regions) != 1 or not said[-1].at_run_time:
                continue
            region = cluster.brokers[broker].labels.region
            if region != regions[0]:
                return f"broker {broker} is in region {region!r}, and was put into {regions[0]}"
        return ""

    def _change(self, change: PlannedChange) -> None:
        world = self.world
        if change.is_leaving is not None:
            word = "leaves" if change.is_leaving else "stays"
            world.trace.add("world", f"broker {change.broker} {word}")
            resource = ResourceType.BROKER, str(change.broker), DECOMMISSION
            self._wanted[resource] = format_value(change.is_leaving)
            self._turn()
        elif change.is_spared is not None:
            word = "is in maintenance" if change.is_spared else "is in maintenance no more"
            world.trace.add("world", f"broker {change.broker} {word}")
            resource = ResourceType.BROKER, str(change.broker), MAINTENANCE
            self._wanted[resource] = str(NO_END if change.is_spared else NOT_SPARED)
            self._turn()
        elif change.broker is not None and change.foreign_bytes is not None:
            world.trace.add(
                "world", f"{change.foreign_bytes} bytes of broker {change.broker}'s disk are taken"
            )
            world.hosts[change.broker].disk.faults.foreign_bytes = change.foreign_bytes
        elif change.broker is not None and change.at_run_time:
            world.trace.add("world", f"broker {change.broker} is put into {change.region}")
            self._wanted[change.broker] = change.region
            self._turn()
        elif change.broker is not None:
            world.trace.add("world", f"broker {change.broker} goes to region {change.region}")
            world.labels[change.broker] = change.region
            world.hosts[change.broker].kill()
            world.restart(change.broker)
        if change.group is not None:
            topic = world.plan(change.group).name
            world.trace.add("world", f"the policy of {topic} becomes {change.policy}")
            self._wanted[ResourceType.TOPIC, topic, POLICY] = change.policy
            self._turn()

    def _turn(self) -> None:
        if self._wanted and not self._is_asking:
            self._is_asking = True
            what, value = next(iter(self._wanted.items()))
            broker = self.rng.choice(self.world.scenario.brokers)
            self.ask(broker, partial(self._ask, what=what, value=value), lambda: None)
            self.world.scheduler.after(AGAIN_MS * US_PER_MS, self._again)

    def _again(self) -> None:
        self._is_asking = False
        self._turn()

    def _ask(self, member: "Member", what: Wanted, value: str) -> None:
        """Inside the broker."""
        assert isinstance(member, BrokerMember)

        def on_answer(is_set: bool) -> None:
            if self._wanted.get(what) == value:
                del self._wanted[what]
                if not is_set:  # What is refused now is asked for again, after the others.
                    self._wanted[what] = value

        if isinstance(what, int):
            member.ask(
                AlterBrokerLabelsRequest([what], [LabelChange("region", value)]),
                AlterBrokerLabelsResponse,
                ALTER_LABELS_VERSION,
                on_answer=lambda answer: on_answer(not answer.error_code),
                on_closed=lambda _: None,
            )
            return
        asked = AlterConfigsResource(
            resource_type=what[0],
            resource_name=what[1],
            configs=[AlterableConfig(what[2], ConfigOperation.SET, value)],
        )
        member.ask(
            IncrementalAlterConfigsRequest([asked]),
            IncrementalAlterConfigsResponse,
            ALTER_CONFIGS_VERSION,
            on_answer=lambda answer: on_answer(not any(one.error_code for one in answer.responses)),
            on_closed=lambda _: None,
        )

"""An operator who carries out the planned changes of a scenario.

Why:    the balancer moves replicas when policies, labels, zones or disks change; they change while
        everything else goes wrong.
How:    sets a key, or a label at run time, by a request to any broker, and repeats it until a
        broker answers that it is set. An abandoned attempt may still take effect after the next
        change. So in the end the operator looks, and sets again the last value of a broker's keys.
        To change a label in a configuration file, it kills the broker, which starts with the new
        one. A ruling on a zone or region ends with any answer, as it may be refused.
Owns:   the changes that are left to do.
Source: docs/decisions/0010-the-balancer.md, 0015-labels-at-run-time.md and 0018-outages.md; design
        section 10."""

import random
from collections.abc import Callable
from functools import partial

from strandline.config.broker_life import DECOMMISSION, MAINTENANCE, NO_END
from strandline.config.keys import format_value
from strandline.controller.commands import ConfigOperation, ResourceType
from strandline.controller.placing.policies import SHRINK
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
from strandline.protocol.messages.rule_zone import RuleZoneRequest, RuleZoneResponse
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.connections import Exchange
from strandline.simulation.faults.disturbances import OPERATOR
from strandline.simulation.scenarios.scenario import PlannedChange
from strandline.simulation.world.broker_member import ALTER_CONFIGS_VERSION, BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.member import Member
from strandline.simulation.world.scheduler import US_PER_MS

AGAIN_MS = 500
ALTER_LABELS_VERSION, RULE_ZONE_VERSION = 0, 0
POLICY = "placement.policy"

NO_MAINTENANCE = 0

Resource = tuple[ResourceType, str, str]
"""What has configuration, by its name, and the key."""
Wanted = Resource | BrokerId | PlannedChange
"""A key, or the region of a broker, or what is to be thought of a zone."""


class Operator(Client):
    """See the module."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng)
        self._wanted: dict[Wanted, str] = {}
        """{what: the value that it shall have, and is not known to have}"""
        self._said: dict[Resource, str] = {}
        """{a broker's key: the value that was said last}"""
        self.ruling_count = 0
        """What was said of zones and regions, and was not refused."""
        self._is_asking = False

    def start(self) -> None:
        """Begin."""
        for change in self.cluster.scenario.changes:
            self.scheduler.after(change.at_ms * US_PER_MS, partial(self._change, change))

    @property
    def is_done(self) -> bool:
        """Whether all is set."""
        return not self._wanted

    def misplaced_broker(self, cluster: Cluster) -> str:
        """A broker that is not in the region that was said last; empty where there is none.

        Only of those that were said at run time, once: an attempt that was given up may still be
        carried out, and none but the last would be known to be the last."""
        for broker in self.cluster.scenario.brokers:
            said = [one for one in self.cluster.scenario.changes if one.broker == broker]
            regions = [one.region for one in said if one.at_run_time]
            if len(regions) != 1 or not said[-1].at_run_time:
                continue
            region = cluster.brokers[broker].labels.region
            if region != regions[0]:
                return f"broker {broker} is in region {region!r}, and was put into {regions[0]}"
        return ""

    def reassert(self, cluster: Cluster) -> str:
        """A broker's key that is not what was said last, and is said again; empty where none is."""
        for resource, value in self._said.items():
            _, broker, key = resource
            values = cluster.broker_configs.get(BrokerId(int(broker)), {})
            if key in values and values[key] != value:
                found = f"{key} of broker {broker} is {values[key]}, and {value} was said last"
                self.cluster.trace.add("world", found)
                self._wanted[resource] = value
                self._turn()
                return found
        return ""

    def _change(self, change: PlannedChange) -> None:
        cluster = self.cluster
        if change.broker is not None:
            cluster.disturbances.begin(OPERATOR, "operator")
        if change.ruling:
            where, for_ms = "/".join(change.domain), change.for_ms
            cluster.trace.add("world", f"{where}: {change.ruling} for {for_ms} ms")
            self._wanted[change] = change.ruling
            self._turn()
        elif change.is_leaving is not None:
            word = "leaves" if change.is_leaving else "stays"
            cluster.trace.add("world", f"broker {change.broker} {word}")
            self._say(change.broker, DECOMMISSION, format_value(change.is_leaving))
        elif change.in_maintenance is not None:
            word = "is in maintenance" if change.in_maintenance else "is in maintenance no more"
            cluster.trace.add("world", f"broker {change.broker} {word}")
            self._say(
                change.broker, MAINTENANCE, str(NO_END if change.in_maintenance else NO_MAINTENANCE)
            )
        elif change.broker is not None and change.foreign_bytes is not None:
            cluster.trace.add(
                "world", f"{change.foreign_bytes} bytes of broker {change.broker}'s disk are taken"
            )
            cluster.hosts[change.broker].disk.faults.foreign_bytes = change.foreign_bytes
        elif change.broker is not None and change.at_run_time:
            cluster.trace.add("world", f"broker {change.broker} is put into {change.region}")
            self._wanted[change.broker] = change.region
            self._turn()
        elif change.broker is not None:
            cluster.trace.add("world", f"broker {change.broker} goes to region {change.region}")
            cluster.labels[change.broker] = change.region
            cluster.hosts[change.broker].kill()
            cluster.restart(change.broker)
        if change.group is not None and change.shrinks is not None:
            topic = cluster.plan(change.group).name
            cluster.trace.add("world", f"{SHRINK} of {topic}: {change.shrinks}")
            resource = ResourceType.TOPIC, topic, SHRINK
            self._wanted[resource] = format_value(change.shrinks)
            self._turn()
        elif change.group is not None and change.min_insync:
            topic = cluster.plan(change.group).name
            cluster.trace.add("world", f"min.insync.replicas of {topic}: {change.min_insync}")
            self._wanted[ResourceType.TOPIC, topic, "min.insync.replicas"] = str(change.min_insync)
            self._turn()
        elif change.group is not None:
            topic = cluster.plan(change.group).name
            cluster.trace.add("world", f"the policy of {topic} becomes {change.policy}")
            self._wanted[ResourceType.TOPIC, topic, POLICY] = change.policy
            self._turn()

    def _say(self, broker: BrokerId | None, key: str, value: str) -> None:
        resource = ResourceType.BROKER, str(broker), key
        self._wanted[resource] = self._said[resource] = value
        self._turn()

    def _turn(self) -> None:
        if self._wanted and not self._is_asking:
            self._is_asking = True
            what, value = next(iter(self._wanted.items()))
            broker = self.rng.choice(self.cluster.scenario.brokers)
            self.ask(broker, partial(self._ask, what=what, value=value), lambda: None)
            self.scheduler.after(AGAIN_MS * US_PER_MS, self._again)

    def _again(self) -> None:
        self._is_asking = False
        self._turn()

    def _ask(self, member: Member, exchange: Exchange, what: Wanted, value: str) -> None:
        """Inside the broker. An answer that is lost ends nothing: the same is asked for again."""
        assert isinstance(member, BrokerMember)

        def on_answer(*, is_set: bool) -> None:
            if exchange.settle() and self._wanted.get(what) == value:
                del self._wanted[what]
                if not is_set:  # What is refused now is asked for again, after the others.
                    self._wanted[what] = value

        if isinstance(what, PlannedChange):
            self._rule(member, what, lambda: on_answer(is_set=True))
            return
        if isinstance(what, int):
            member.ask(
                AlterBrokerLabelsRequest([what], [LabelChange("region", value)]),
                AlterBrokerLabelsResponse,
                ALTER_LABELS_VERSION,
                on_answer=lambda answer: on_answer(is_set=not answer.error_code),
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
            on_answer=lambda answer: on_answer(
                is_set=not any(one.error_code for one in answer.responses)
            ),
            on_closed=lambda _: None,
        )

    def _rule(self, member: BrokerMember, change: PlannedChange, done: Callable[[], None]) -> None:
        """Inside the broker."""
        region, zone = (*change.domain, "")[:2]

        def on_answer(answer: RuleZoneResponse) -> None:
            if not answer.error_code:
                self.ruling_count += 1
            done()

        member.ask(
            RuleZoneRequest(region, zone, change.ruling, change.for_ms),
            RuleZoneResponse,
            RULE_ZONE_VERSION,
            on_answer=on_answer,
            on_closed=lambda _: None,
        )

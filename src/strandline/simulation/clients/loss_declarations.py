"""An operator who declares a loss, as `strandline partition declare-lost` does.

Why:    the command gives up acknowledged records. Operators give it while other things go wrong,
        and what it reports as at risk must be the truth.
How:    once disks or brokers are gone for good (`lasting_losses`), it looks again and again:
            which brokers hold the log, and which are reachable?    it asks every broker
            too few are left, for a while      it asks what a declaration would mean
                                               (`validate_only`)
            the answer shows what is at risk   it stops the brokers that it gives up
            it types the topic's name          one time in ten wrongly: nothing is done, and it
                                               looks again
            the loss is declared               with the logs that it was shown; repeated if no
                                               answer arrives
        After a refusal it looks again. If a broker lost its log before, and has more than the
        brokers that may lead, that broker blocks the declaration: it is stopped and given up too.
Owns:   since when too few replicas are left, and which brokers it keeps down.
Source: docs/decisions/0026 and 0027; docs/operating/outages.md; design section 10."""

import random
import re
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

from strandline.client.operations.survivors import ReplicaLogs
from strandline.controller.arbitration.survivors import GroupStatus
from strandline.model.ids import BrokerId, Offset
from strandline.protocol.messages.declare_lost import DeclareLostRequest, DeclareLostResponse
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
)
from strandline.protocol.messages.describe_topology import (
    DescribeTopologyRequest,
    DescribeTopologyResponse,
)
from strandline.protocol.table import Message
from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.lookups import Closed
from strandline.simulation.faults.kinds import LASTING_LOSS
from strandline.simulation.invariants.facts import Declaration, LossConfirmed
from strandline.simulation.scenarios.scenario import GroupPlan
from strandline.simulation.world.broker_member import BrokerMember
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS

LOOK_MS = (100, 600)
PATIENCE_MS = (0, 300, 1_500)
APPOINTING_MS = 4_000
"""After a declaration it looks for so long before it declares again."""
READING_MS = (10, 1_500)
DECLARING_TIMEOUT_MS = 4_000
ATTEMPTS = 3
MISTYPED = 0.1
IN_THE_WAY = re.compile(r"broker (\d+), which may not lead")
"""What the refusal says of a broker that has more than those that are left."""
IN_THE_WAY_COUNT = 5
"""So many refusals for that before its broker is given up, too."""
SILENCE_MS = 3_000
"""After so long nobody hears it any more."""
VERSION = 0

A = TypeVar("A", bound=Message)


class LossDeclaration(Client):
    """See the module. `declared_count`: what was answered as declared."""

    def __init__(self, name: str, cluster: SimCluster, rng: random.Random) -> None:
        super().__init__(name, cluster, rng)
        self.declared_count = 0
        self._patience_us = rng.choice(PATIENCE_MS) * US_PER_MS
        self._short_since_us: dict[str, int] = {}
        """{topic: when it was found to be short, and was not found otherwise since}"""
        self._refused_count = 0
        self._is_busy = False

    def start(self) -> None:
        """On call from now on."""
        self._turn()

    def stop(self) -> None:
        """Begin nothing new."""
        super().stop()
        self.cluster.kept_down.clear()

    def _turn(self) -> None:
        if self.is_stopped:
            return
        if not self._is_busy and LASTING_LOSS in self.cluster.begun_kinds:
            self._is_busy = True
            self._look(self.rng.choice(self.cluster.scenario.groups))
        self.scheduler.after(self.rng.randint(*LOOK_MS) * US_PER_MS, self._turn)

    def _rest(self) -> None:
        """Whoever was kept down may come back."""
        self.cluster.kept_down.clear()
        self._is_busy = False

    # ---- what is there? --------------------------------------------------------------------------

    def _look(self, plan: GroupPlan) -> None:
        request = DescribeReplicaLogsRequest(topic=plan.name, partition=0)

        def on_logs(logs: dict[BrokerId, DescribeReplicaLogsResponse]) -> None:
            if not logs:
                self._rest()
                return
            asked = self.rng.choice(sorted(logs))
            self._ask_all(
                (asked,),
                DescribeTopologyRequest(),
                DescribeTopologyResponse,
                lambda answers: self._judge(plan, logs, answers=answers),
            )

        self._ask_all(self.cluster.scenario.brokers, request, DescribeReplicaLogsResponse, on_logs)

    def _judge(
        self,
        plan: GroupPlan,
        logs: dict[BrokerId, DescribeReplicaLogsResponse],
        *,
        answers: dict[BrokerId, DescribeTopologyResponse],
    ) -> None:
        best = max(logs.values(), key=lambda one: one.cluster_version)
        possible = tuple(tuple(map(BrokerId, one.voters)) for one in best.possible)
        hosts = {one for each in possible for one in each}
        for broker, member in self._members().items():
            if broker in logs and (partition := member.partition_of(plan.group)) is not None:
                hosts.update(partition.hosts)
        found = ReplicaLogs(
            possible,
            tuple(sorted(hosts)),
            {one: logs[one] for one in logs if one in hosts},
            frozenset(
                BrokerId(one.broker_id)
                for answer in answers.values()
                for one in answer.brokers
                if one.is_alive
            ),
            best.needs_all,
            best.floor,
        )
        now_us = self.scheduler.now_us
        patience_us = self._patience_us
        if found.needs_all:  # Who was named last is on its way to be appointed.
            patience_us = max(patience_us, APPOINTING_MS * US_PER_MS)
        if not answers or found.judge().standing is not GroupStatus.SHORT:
            self._short_since_us.pop(plan.name, None)
            self._rest()
        elif now_us - self._short_since_us.setdefault(plan.name, now_us) < patience_us:
            self._rest()
        else:
            self._preview(plan, found)

    def _members(self) -> dict[BrokerId, BrokerMember]:
        hosts = self.cluster.hosts.items()
        programs = ((one, host.program) for one, host in hosts)
        return {one: program for one, program in programs if isinstance(program, BrokerMember)}

    # ---- what would it mean? ---------------------------------------------------------------------

    def _preview(self, plan: GroupPlan, found: ReplicaLogs) -> None:
        lost = found.silent
        request = DeclareLostRequest(
            topic=plan.name,
            partition=0,
            grant=max(one.grant for one in found.answers.values()),
            broker_ids=[int(one) for one in lost],
            validate_only=True,
        )
        asked = self.rng.choice(sorted(found.answers))

        def on_answer(answer: DeclareLostResponse | None) -> None:
            if answer is None or self.is_stopped:
                self._rest()
            elif answer.error_code:
                self._on_refused(plan, answer.error_message or "")
            else:
                self._show(plan, lost, preview=answer, asked=asked)

        self._declare(asked, request, on_answer)

    def _on_refused(self, plan: GroupPlan, message: str) -> None:
        self.cluster.trace.add(self.name, f"may not declare a loss: {message}")
        named = IN_THE_WAY.search(message)
        self._refused_count += named is not None
        if named is None or self._refused_count < IN_THE_WAY_COUNT:
            self._rest()
            return
        self._refused_count = 0
        self._keep_down([BrokerId(int(named[1]))])
        self.scheduler.after(SILENCE_MS * US_PER_MS, lambda: self._look(plan))

    def _show(
        self,
        plan: GroupPlan,
        lost: list[BrokerId],
        *,
        preview: DeclareLostResponse,
        asked: BrokerId,
    ) -> None:
        """What is at risk is on the screen; the processes are stopped before the name is typed."""
        self._keep_down(lost)
        declaration = Declaration(
            group=plan.group,
            grant=preview.grant,
            lost=tuple(lost),
            leader=BrokerId(preview.leader_id),
            at_risk_from=Offset(preview.committed_offset),
            end=Offset(preview.log_end_offset),
        )
        request = DeclareLostRequest(
            topic=plan.name,
            partition=0,
            grant=preview.grant - 1,
            broker_ids=[int(one) for one in lost],
            logs=preview.logs,
            by=self.name,
        )
        typed = plan.name[1:] if self.rng.random() < MISTYPED else plan.name

        def on_typed() -> None:
            if self.is_stopped:
                self._rest()
            elif typed != plan.name:  # The command is given again; who is stopped stays so.
                self.cluster.trace.add(self.name, "mistypes the name: nothing is done")
                self._look(plan)
            else:
                self.cluster.trace.add(self.name, f"has typed the name: {declaration}")
                self.cluster.checker.loss_confirmed(LossConfirmed(declaration))
                self._short_since_us.pop(plan.name, None)
                self._attempt(request, asked, left=ATTEMPTS)

        self.scheduler.after(self.rng.randint(*READING_MS) * US_PER_MS, on_typed)

    # ---- it is done ------------------------------------------------------------------------------

    def _attempt(self, request: DeclareLostRequest, asked: BrokerId, *, left: int) -> None:
        def on_answer(answer: DeclareLostResponse | None) -> None:
            if answer is None and left > 1:
                other = self.rng.choice(self.cluster.scenario.brokers)
                self._attempt(request, other, left=left - 1)
                return
            if answer is not None and answer.error_code:
                self.cluster.trace.add(self.name, f"declared nothing: {answer.error_message}")
            elif answer is not None:
                self.declared_count += 1
                self.cluster.trace.add(self.name, f"goes on from offset {answer.log_end_offset}")
            self._rest()

        self._declare(asked, request, on_answer)

    def _keep_down(self, brokers: Collection[BrokerId]) -> None:
        """Nobody who is given up may go on, or come back, before that is taken down."""
        for broker in brokers:
            self.cluster.kept_down.add(broker)
            host = self.cluster.hosts[broker]
            if host.is_up:
                self.cluster.trace.add(self.name, f"stops broker {broker}")
                host.kill()
                self.cluster.restart(broker)

    # ---- requests --------------------------------------------------------------------------------

    def _declare(
        self,
        broker: BrokerId,
        request: DeclareLostRequest,
        done: Callable[[DeclareLostResponse | None], None],
    ) -> None:
        question = partial(_ask, request, DeclareLostResponse)
        self.lookup(broker, question, done, timeout_ms=DECLARING_TIMEOUT_MS)

    def _ask_all(
        self,
        brokers: Collection[BrokerId],
        request: Message,
        cls: type[A],
        done: Callable[[dict[BrokerId, A]], None],
    ) -> None:
        """Ask them all at once; `done` with the answers of those that gave one."""
        found: dict[BrokerId, A] = {}
        waiting = set(brokers)

        def end(broker: BrokerId, answer: A | None) -> None:
            waiting.discard(broker)
            if answer is not None:
                found[broker] = answer
            if not waiting:
                done(found)

        for broker in sorted(brokers):
            self.lookup(broker, partial(_ask, request, cls), partial(end, broker))


def _ask(
    request: Message, cls: type[A], member: BrokerMember, found: Callable[[A], None], closed: Closed
) -> None:
    """Inside the broker."""
    member.ask(request, cls, VERSION, on_answer=found, on_closed=closed)

"""Checks new labels of brokers against the policies in force, before the controller accepts them.

Why:    Labels decide where data may be. A mistyped one moves data across regions, and a removed one
        leaves a policy without meaning. A restart applies them without a question.
How:    This checks every policy in force with the brokers' present labels, and with the new ones.
        It objects if a policy could be met and no longer can, or if a broker would lack a label
        that a policy needs. It does not object if the policy cannot be met either way, or can be
        met by moving data, because the balancer moves it. To report these moves it judges the
        partitions with a replica on these brokers as the balancer would.
Owns:   nothing; one `LabelChecks` for each command.
Source: decision 0015."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from strandline.controller.balancer.plans import Ask, Plans, Wanted
from strandline.controller.commands import TopicMoves
from strandline.controller.decision import Draft, Facts
from strandline.controller.listing import listed
from strandline.controller.placing.policies import candidates_of
from strandline.model.cluster import Labels, Partition, Topic
from strandline.model.ids import BrokerId
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import missing_for, solve
from strandline.placement.topology.labels import MissingLabel
from strandline.placement.topology.universe import Candidate

JUDGED_MAX = 1_000
"""How many partitions the check of moves covers: a third of a second. The check of policies covers
all."""
EXAMPLES_MAX = 5


class LabelChecks:
    """The checks of one command. `labels`: those that brokers would have."""

    def __init__(self, facts: Facts, labels: Mapping[BrokerId, Labels]) -> None:
        self._facts = facts
        self._changed = frozenset(labels)
        after = [replace(one, labels=labels.get(one.id, one.labels)) for one in facts.brokers]
        self._before = Plans(facts.brokers, frozenset(), facts.leaving)
        self._after = Plans(after, frozenset(), facts.leaving)
        self._candidates_before = candidates_of(facts, Draft(facts.state))
        self._candidates_after = [
            replace(one, labels=labels.get(one.id, one.labels)) for one in self._candidates_before
        ]

    def objections(self) -> list[str]:
        """The objections to the labels, each a sentence without its full stop."""
        found = self._missing()
        # If a broker lacks a label that a policy needs, that is the only objection by that policy.
        return found or self._unmet()

    def moves(self) -> list[TopicMoves]:
        """The partitions that keep their policies now, and would not."""
        found: dict[str, list[int]] = {}
        judged = 0
        for topic, ask in self._asks():
            for one in topic.partitions:
                if judged == JUDGED_MAX or not self._changed.intersection(one.hosts):
                    continue
                judged += 1
                if _is_right(self._before, ask, one) and not _is_right(self._after, ask, one):
                    found.setdefault(topic.name, []).append(one.index)
        return [
            TopicMoves(name, len(indexes), tuple(indexes[:EXAMPLES_MAX]))
            for name, indexes in found.items()
        ]

    def _asks(self) -> Iterator[tuple[Topic, Ask]]:
        """The topics that have a policy, with the policy."""
        cluster = self._facts.state.cluster
        for topic in cluster.topics.values():
            ask = self._before.ask(topic, cluster)
            if ask.key and not ask.mistake:
                yield topic, ask

    def _missing(self) -> list[str]:
        """The labels that policies need, and that brokers would newly lack."""
        lacking: dict[MissingLabel, list[str]] = {}
        known: dict[Ask, list[MissingLabel]] = {}
        for topic, ask in self._asks():
            if ask not in known:
                before = missing_for(ask.policy, self._candidates_before)
                after = missing_for(ask.policy, self._candidates_after)
                known[ask] = [one for one in after if one not in before]
            for one in known[ask]:
                lacking.setdefault(one, []).append(topic.name)
        return [
            f"broker {one.broker} would have no label {one.label!r}, which the policy of "
            f"{_topics(names)} needs"
            for one, names in lacking.items()
        ]

    def _unmet(self) -> list[str]:
        """The policies that could be met now, and could not then."""
        reasons: dict[tuple[Ask, int], str] = {}
        hurt: dict[tuple[Ask, int], list[Topic]] = {}
        for topic, ask in self._asks():
            key = ask, len(topic.partitions[0].replicas)
            if key not in reasons:
                # The first reason comes in full, with the nearest policy that can be met.
                reasons[key] = self._unmet_reason(*key, explains=not any(reasons.values()))
            if reasons[key]:
                hurt.setdefault(key, []).append(topic)
        return [
            f"{key[0].key} of {_topics([one.name for one in topics])} could not be met any more, "
            f"with {self._replicas_of(topics)}: {reasons[key]}"
            for key, topics in hurt.items()
        ]

    def _unmet_reason(self, ask: Ask, voters: int, *, explains: bool) -> str:
        """Why the policy could not be met; empty if it could, or cannot be met now either."""
        request = Request(
            policy=ask.policy,
            min_insync_replicas=ask.min_insync_replicas,
            default_voters=voters,
            takes_down_brokers=True,
        )

        def answer(candidates: list[Candidate], *, explains: bool = False) -> Refusal | None:
            found = solve(request, candidates, rng=self._facts.rng, explains=explains)
            return found if isinstance(found, Refusal) else None

        refusal = answer(self._candidates_after, explains=explains)
        if refusal is None or answer(self._candidates_before) is not None:
            return ""
        return refusal.text()

    def _replicas_of(self, topics: list[Topic]) -> str:
        """The replicas on the brokers whose labels change."""
        held = [
            (one.name, sorted(self._changed.intersection(one.hosts)))
            for topic in topics
            for one in topic.partitions
            if self._changed.intersection(one.hosts)
        ]
        if not held:
            return "no replica on these brokers"
        texts = [f"{name} on {_brokers(brokers)}" for name, brokers in held]
        return f"replicas of {listed(texts, noun='partitions')}"


def _is_right(plans: Plans, ask: Ask, partition: Partition) -> bool:
    wanted = plans.of(ask, partition.roles)
    return isinstance(wanted, Wanted) and wanted.is_right(partition.roles)


def _topics(names: list[str]) -> str:
    noun = "topic" if len(names) == 1 else "topics"
    return f"{noun} {listed(names)}"


def _brokers(ids: list[BrokerId]) -> str:
    return f"broker{'s' * (len(ids) > 1)} {', '.join(map(str, ids))}"

"""Decides whether a group without state here is new, or this broker has lost its disk.

Why:    only its members know the controller's group. A voter that lost its disk must not vote as if
        its log had always been empty; the voters of a new cluster must vote.
How:    a voter without state takes no part (as in `raft.follower.rejoin`) and asks the other voters
        whether they know any epoch of the group:

            no state --any broker does--> lost: rejoins when the group's leader says so
                     --none of all others does--> new: noted durably, then takes part

        If the disk was lost, a receiver of this replica's vote or acknowledgement knew an epoch
        before. So all must answer, at any time since this process started. A new group's first
        candidate needs a majority that has noted that the group is new. The price: a new cluster
        starts only once all its voters have been up.
Owns:   the open questions; one per broker.
Source: Viewstamped Replication Revisited 4.3; Redpanda's bootstrap of a cluster by its seeds."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from strandline.model.ids import BrokerId, Epoch, GroupId
from strandline.raft.events import DeclaredNew
from strandline.replication.replica.replica import Replica
from strandline.replication.shared import Shared
from strandline.replication.wire import HistoryAnswer, HistoryQuestion, Kind

REMINDER_MS = 10_000

_log = logging.getLogger("strandline.replication")


@dataclass(slots=True)
class _Question:
    """`waiting`: voters that have not answered. `is_settled`: all have, and the note is being made
    durable."""

    replica: Replica
    waiting: set[BrokerId]
    reminded_ms: int
    is_settled: bool = False


class GroupBootstrap:
    """See the module. `session` tells answers to this process from those to an earlier one."""

    def __init__(self, replicas: Mapping[GroupId, Replica], shared: Shared, session: int) -> None:
        self._replicas = replicas
        self._durable = shared.durable
        self._outbox = shared.outbox
        self._clock = shared.clock
        self._liveness = shared.liveness
        self._session = session
        self._questions: dict[GroupId, _Question] = {}

    def ask(self, replica: Replica) -> None:
        """Ask about a replica that was opened as if its disk were lost."""
        others = set(replica.configuration.voters) - {replica.self_id}
        now = self._clock.monotonic_ms()
        self._questions[replica.group] = _Question(replica, others, now)
        self._settle(replica.group)

    def tick(self) -> None:
        """Ask again the voters that have not answered."""
        now = self._clock.monotonic_ms()
        for group, question in list(self._questions.items()):
            replica = question.replica
            if replica.failed is not None or not replica.raft.has_lost_state:
                del self._questions[group]
                continue
            self._settle(group)
            for peer in sorted(question.waiting):
                self._send_question(peer, group)
            if question.waiting and now - question.reminded_ms >= REMINDER_MS:
                question.reminded_ms = now
                _log.warning(
                    "%s: no state on this broker; waiting for brokers %s to answer whether the "
                    "group is new",
                    replica.name,
                    ", ".join(map(str, sorted(question.waiting))),
                )

    def has_history(self, group: GroupId) -> bool:
        """Whether this broker knows of any epoch of the group."""
        replica = self._replicas.get(group)
        known = Epoch(0) if replica is None else replica.epoch
        return max(known, self._durable.epoch_of(group)) > 0

    def on_peer_connected(self, peer: BrokerId) -> None:
        """Ask it at once, voter of the list or not: votes may have moved to brokers that are not on
        the list of this one (decision 0048). Only the listed ones can say that a group is new."""
        for group in self._questions:
            self._send_question(peer, group)

    def on_question(self, peer: BrokerId, question: HistoryQuestion) -> None:
        """Answer whether this broker has any history of a group."""
        has_history = self.has_history(question.group)
        answer = HistoryAnswer(question.session, question.group, has_history)
        self._outbox.send_now(peer, Kind.HISTORY_ANSWER, answer)

    def on_answer(self, peer: BrokerId, answer: HistoryAnswer) -> None:
        """Another voter has answered."""
        question = self._questions.get(answer.group)
        if question is None or answer.session != self._session:
            return
        if answer.has_history:
            del self._questions[answer.group]
            _log.warning(
                "%s: broker %d has a history of the group and this one has none, as after the loss "
                "of a disk: it votes once the others have brought it up to date",
                question.replica.name,
                peer,
            )
            return
        question.waiting.discard(peer)
        self._settle(answer.group)

    def _settle(self, group: GroupId) -> None:
        question = self._questions[group]
        if not question.waiting and not question.is_settled:
            question.is_settled = True
            self._durable.persist_new(question.replica, partial(self._on_persisted, question))

    def _on_persisted(self, question: _Question, error: OSError | None) -> None:
        question.is_settled = error is None  # If the disk is full, the next tick tries again.
        replica = question.replica
        assert not question.waiting, "all other voters have answered"
        if error is None and replica.failed is None:
            self._questions.pop(replica.group, None)
            replica.step(DeclaredNew())
            self._begin(replica)

    def _begin(self, replica: Replica) -> None:
        """The group is new: elect a leader at once."""
        self._liveness.moved_on(replica)
        if replica.epoch > 0:
            return
        replica.is_fresh = True
        replica.has_restarted = False
        self._liveness.add(replica)
        if replica.is_preferred:
            replica.stand_first()

    def _send_question(self, peer: BrokerId, group: GroupId) -> None:
        question = HistoryQuestion(self._session, group)
        self._outbox.send_now(peer, Kind.HISTORY_QUESTION, question)

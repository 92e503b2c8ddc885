"""Whether a group of which nothing is remembered here is new, or the disk that remembered is gone.

Why:    of the controller's group nobody but its members knows who held it. A voter whose disk was
        lost must not vote as if its log had always been empty; the voters of a new cluster must.
How:    a voter without any state takes no part (as in `raft.rejoin`) and asks the other voters
        whether they have any history of the group: an epoch, and so a vote or an entry.

            nothing remembered --one has history--> lost: rejoins as the group's leader says
                               --none of all the others has--> new: noted durably, then takes part

        Were the disk lost, whoever got this replica's forgotten vote or acknowledgement would have
        had an epoch before; so nobody's answer but all of them is enough, at whatever moments they
        were given since this process began. A new group's first candidate needs a pre-vote of a
        majority who have all noted that it is new: who asks later, or forgets, is in the minority.
        The price: a cluster is founded only once all its voters have been there.
Owns:   the questions that are open; one per broker.
Source: Viewstamped Replication Revisited 4.3; Redpanda's founding of a cluster by its seeds."""

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from strandline.model.ids import BrokerId, GroupId
from strandline.raft.events import DeclaredNew
from strandline.replication.wire import HistoryAnswer, HistoryQuestion, Kind

if TYPE_CHECKING:
    from strandline.replication.host.replication import Replication
    from strandline.replication.replica.replica import Replica

REMINDER_MS = 10_000

_log = logging.getLogger("strandline.replication")


@dataclass(slots=True)
class _Question:
    """`waiting`: who has not answered. `is_settled`: all have, and that is being made durable."""

    replica: "Replica"
    waiting: set[BrokerId]
    reminded_ms: int
    is_settled: bool = False


class GroupBootstrap:
    """See the module. `session` tells the answers to this process from those to an earlier one."""

    def __init__(self, host: "Replication", session: int) -> None:
        self._host = host
        self._session = session
        self._questions: dict[GroupId, _Question] = {}

    def ask(self, replica: "Replica") -> None:
        """Find out about a replica that was opened as if its disk had been lost."""
        others = set(replica.configuration.voters) - {replica.self_id}
        now = self._host.clock.monotonic_ms()
        self._questions[replica.group] = _Question(replica, others, now)
        self._settle(replica.group)

    def tick(self) -> None:
        """Ask again who has not answered."""
        now = self._host.clock.monotonic_ms()
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
                    "%s: nothing is remembered of it here; waiting to hear from brokers %s whether "
                    "it is new",
                    replica.name,
                    sorted(question.waiting),
                )

    def on_peer_connected(self, peer: BrokerId) -> None:
        """Ask it at once."""
        for group, question in self._questions.items():
            if peer in question.waiting:
                self._send_question(peer, group)

    def on_question(self, peer: BrokerId, question: HistoryQuestion) -> None:
        """Say what is remembered here."""
        has_history = self._host.has_history(question.group)
        answer = HistoryAnswer(question.session, question.group, has_history)
        self._host.send_control(peer, Kind.HISTORY_ANSWER, answer)

    def on_answer(self, peer: BrokerId, answer: HistoryAnswer) -> None:
        """Another voter has said what it remembers."""
        question = self._questions.get(answer.group)
        if question is None or answer.session != self._session:
            return
        if answer.has_history:
            del self._questions[answer.group]
            _log.warning(
                "%s: broker %d has a history of it and this one has none, as after the loss of a "
                "disk: it votes once the others have brought it up to date",
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
            self._host.persist_new(question.replica, partial(self._on_persisted, question))

    def _on_persisted(self, question: _Question, error: OSError | None) -> None:
        question.is_settled = error is None  # Where the disk is full, the next tick tries again.
        replica = question.replica
        if error is None and replica.failed is None:
            self._questions.pop(replica.group, None)
            replica.step(DeclaredNew())
            self._host.begin_fresh(replica)

    def _send_question(self, peer: BrokerId, group: GroupId) -> None:
        question = HistoryQuestion(self._session, group)
        self._host.send_control(peer, Kind.HISTORY_QUESTION, question)

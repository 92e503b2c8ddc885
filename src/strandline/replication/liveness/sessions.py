"""Coalesced heartbeats: one message for each pair of brokers, whatever the number of groups.

Why:    10,000 idle groups must cost nothing, and yet each follower must know within a time-out that
        its leader is gone.
How:    a leader's broker keeps, for each peer, the versioned set of (group, epoch) that it leads
        there. A heartbeat carries the changes since the acknowledged version and stands for the
        whole set. The answer refuses groups in which the peer has moved on or lost its disk.

            LeadSession (at the leader's broker)            FollowSession (at the follower's)
              set / remove --> version++                      followed = set at `version`
              heartbeat(from acked, changes) ---------------> applies, or asks for everything (-1)
              <------------------------------------ answer(version, refused, nonce)

        An answered heartbeat, sent at time t, proves for every confirmed group that is not refused:
        the peer was in no later epoch, and will not vote against this leader before t + election
        time-out. Leases and check-quorum rest on that, whatever the peer refuses later.
            A new session replaces the present one if its heartbeat returns the nonce drawn when
        that one began, which delayed heartbeats of a dead process cannot, or once the promise to
        the present one has expired. Until then the answers say that nothing is known.
Owns:   one LeadSession and one FollowSession for each peer.
Source: design section 5; Ongaro's thesis 6.4.1 for leases; decision 0035."""

from collections.abc import Callable, Iterator

from strandline.model.ids import Epoch, GroupId
from strandline.replication.wire import ABILITIES, Ability, Heartbeat, HeartbeatAnswer

NEVER_MS = -(1 << 60)
REMOVED = Epoch(0)
RTT_GAIN = 0.25
"""The share of a new sample in the smoothed round trip: idle brokers take few."""


class LeadSession:
    """The leader broker's side, for one peer. `on_change`: called when what it leads changes."""

    def __init__(self, session: int, on_change: Callable[[], None] | None = None) -> None:
        self._session = session
        self._on_change = on_change
        self._number = 0
        self._nonce = 0
        self._version = 1
        self._acknowledged = 0
        # The version from which everything was sent again: removals before it are in no change.
        self._resent_version = 0
        self._led: dict[GroupId, Epoch] = {}
        # {group: (version of its last change, epoch or REMOVED)}, unacknowledged changes only.
        self._changes: dict[GroupId, tuple[int, Epoch]] = {}
        # Groups that the peer refused in its latest answer.
        self._refused: frozenset[GroupId] = frozenset()
        self.answered_number = 0
        self.answered_sent_ms = NEVER_MS
        self.answered_ms = NEVER_MS
        self.rtt_ms = 0.0

    def lead(self, group: GroupId, epoch: Epoch) -> None:
        """This broker leads `group` in `epoch`, and the peer is a member."""
        if self._led.get(group) != epoch:
            self._led[group] = epoch
            self._change(group, epoch)

    def unlead(self, group: GroupId) -> None:
        """This broker does not lead `group`, or the peer is no member."""
        if self._led.pop(group, None) is not None:
            self._change(group, REMOVED)

    def is_confirmed(self, group: GroupId) -> bool:
        """Whether the peer acknowledges, by its latest answer, that this broker leads `group` in
        the present epoch."""
        return group in self._led and group not in self._changes and group not in self._refused

    def heartbeat(self, now_ms: int) -> Heartbeat:
        """The next heartbeat."""
        self._number += 1
        return Heartbeat(
            session=self._session,
            number=self._number,
            sent_ms=now_ms,
            from_version=self._acknowledged,
            version=self._version,
            changes=[(group, epoch) for group, (_, epoch) in self._changes.items()],
            abilities=ABILITIES,
            nonce=self._nonce,
        )

    @property
    def leads_any(self) -> bool:
        """Whether this broker leads something towards the peer."""
        return bool(self._led)

    @property
    def is_settled(self) -> bool:
        """Whether the peer acknowledges all of it, and refuses nothing: it may soon vouch for what
        it refuses, and a lease may wait for that."""
        return self._acknowledged == self._version and not self._refused

    def on_answer(
        self, answer: HeartbeatAnswer, now_ms: int, *, held_ms: int = 0
    ) -> list[tuple[GroupId, Epoch]]:
        """Apply an answer, which the peer kept for `held_ms`; returns the refused groups with the
        peer's epochs."""
        if answer.session != self._session or answer.number <= self.answered_number:
            return []
        self.answered_number = answer.number
        self._nonce = answer.nonce
        self.answered_ms = now_ms
        sample = max(0, now_ms - answer.sent_ms - held_ms)
        self.rtt_ms += (sample - self.rtt_ms) * (RTT_GAIN if self.rtt_ms else 1)
        if answer.version < max(self._acknowledged, self._resent_version):
            self._reset_acknowledgements()
            return []
        self.answered_sent_ms = answer.sent_ms
        self._refused = frozenset(group for group, _ in answer.refused)
        self._acknowledged = answer.version
        self._changes = {
            group: change for group, change in self._changes.items() if change[0] > answer.version
        }
        return answer.refused

    def _reset_acknowledgements(self) -> None:
        """The peer does not know this session (either broker restarted): everything is unconfirmed
        again."""
        self.answered_sent_ms = NEVER_MS
        if self._acknowledged == 0:
            return  # The heartbeats in flight carry everything; later removals are changes.
        self._acknowledged = 0
        self._version += 1
        self._resent_version = self._version
        self._changes = {group: (self._version, epoch) for group, epoch in self._led.items()}

    def _change(self, group: GroupId, epoch: Epoch) -> None:
        self._version += 1
        self._changes[group] = (self._version, epoch)
        if self._on_change is not None:
            self._on_change()


class FollowSession:
    """The follower broker's side, for one peer.

    `nonces`: numbers that no process of this broker has ever given the peer."""

    def __init__(self, nonces: Iterator[int], election_timeout_ms: int) -> None:
        self._session = -1
        self._nonces = nonces
        # A heartbeat that returns it comes from a process that lived when this session began.
        self._nonce = 0
        self._election_timeout_ms = election_timeout_ms
        self._number = -1
        self._version = -1
        self.followed: dict[GroupId, Epoch] = {}
        # {group: the local replica's epoch} where that is later, or its log was lost.
        self._refused: dict[GroupId, Epoch] = {}
        # {refused group: when this broker last answered the peer as its leader}, if it did: the
        # peer may not know of the refusal. All are in `followed`.
        self._left_ms: dict[GroupId, int] = {}
        self.last_contact_ms = NEVER_MS
        # The abilities of the peer's release, by its latest heartbeat.
        self.abilities = Ability(0)
        # Counts the gaps of an election time-out or more between heartbeats.
        self.contact = 0

    @property
    def is_known(self) -> bool:
        """Whether the peer has sent a heartbeat."""
        return self._session != -1

    def is_fresh(self, now_ms: int) -> bool:
        """Whether a heartbeat came within an election time-out, as far as this process can tell:
        the peer may count on that."""
        return now_ms - self.last_contact_ms < self._election_timeout_ms

    def on_heartbeat(
        self, heartbeat: Heartbeat, now_ms: int
    ) -> tuple[list[tuple[GroupId, Epoch]], list[GroupId]]:
        """Apply a heartbeat; returns the changes, and the groups that this session no longer
        covers.

        Skip one that arrives after a later one: its changes may have been undone. Skip one of
        another process without the nonce while the present one may count on an answer."""
        if heartbeat.session == self._session:
            if heartbeat.number <= self._number:
                return [], []
        elif self.is_fresh(now_ms) and heartbeat.nonce != self._nonce:
            return [], []
        self.abilities = Ability(heartbeat.abilities & ABILITIES)
        uncovered: list[GroupId] = []
        if heartbeat.from_version == 0 or heartbeat.session != self._session:
            known = dict(heartbeat.changes) if heartbeat.from_version == 0 else {}
            uncovered = [group for group in self.followed if known.get(group, REMOVED) == REMOVED]
            is_new = heartbeat.session != self._session
            for group in list(self._left_ms):
                if is_new or known.get(group) != self.followed[group]:
                    del self._left_ms[group]
            self.followed.clear()
            self._refused.clear()
            if is_new:
                self._nonce = next(self._nonces)
            self._session = heartbeat.session
            self._version = 0 if heartbeat.from_version == 0 else -1
        self._number = heartbeat.number
        if heartbeat.from_version > self._version:
            self._version = -1
            return [], uncovered
        self.last_contact_ms = now_ms
        self._version = max(self._version, heartbeat.version)
        for group, epoch in heartbeat.changes:
            if epoch == REMOVED:
                if self.followed.pop(group, None) is not None:
                    uncovered.append(group)
                self._refused.pop(group, None)
                self._left_ms.pop(group, None)
            else:
                if self.followed.get(group, epoch) != epoch:
                    self._left_ms.pop(group, None)
                self.followed[group] = epoch
        return heartbeat.changes, uncovered

    def moved_on(self, group: GroupId, epoch: Epoch, *, vouches: bool) -> None:
        """The same as `announced`, for a replica that has moved to `epoch`: the peer may still
        count on an earlier answer."""
        was_counted_on = self._vouches_for(group)
        self.announced(group, epoch, vouches=vouches)
        if was_counted_on and not self._vouches_for(group):
            self._left_ms[group] = self.last_contact_ms

    def announced(self, group: GroupId, epoch: Epoch, *, vouches: bool) -> None:
        """The local replica is in `epoch`: refuse the peer's leadership in an earlier one, or if
        the replica `vouches` for none because it may have forgotten a later one."""
        led = self.followed.get(group)
        if led is not None:
            if led < epoch or not vouches:
                self._refused[group] = epoch
            else:
                self._refused.pop(group, None)

    def left_ms(self, group: GroupId) -> int:
        """When this broker last answered the peer as the leader of `group`, before the replica here
        moved on: the peer may count on that for an election time-out."""
        return self._left_ms.get(group, NEVER_MS)

    def _vouches_for(self, group: GroupId) -> bool:
        return group in self.followed and group not in self._refused

    def covers(self, group: GroupId, epoch: Epoch) -> bool:
        """Whether each heartbeat of this peer shows that the leader of `group` lives, for a replica
        in `epoch`."""
        return self.followed.get(group, REMOVED) >= max(epoch, 1)

    def is_answered(self, heartbeat: Heartbeat) -> bool:
        """Whether to answer a heartbeat: not a skipped one of an earlier release, which would
        forget what it has removed."""
        return heartbeat.session == self._session or heartbeat.nonce >= 0

    def is_latest(self, heartbeat: Heartbeat) -> bool:
        """Whether a heartbeat was applied, and none after it."""
        return heartbeat.session == self._session and heartbeat.number == self._number

    def can_wait(self, heartbeat: Heartbeat) -> bool:
        """Whether the peer learns nothing by the answer, and no lease can rest on it: the peer
        leads nothing here, knows that this broker knows, and has the nonce."""
        return (
            self.is_latest(heartbeat)
            and not self.followed
            and heartbeat.from_version == heartbeat.version == self._version
            and heartbeat.nonce == self._nonce
        )

    def answer(self, heartbeat: Heartbeat) -> HeartbeatAnswer:
        """The answer to a heartbeat that was applied or skipped. It says no more than the heartbeat
        did: the answer to a later one may arrive after it, and must not seem to take back
        anything."""
        is_present = heartbeat.session == self._session
        return HeartbeatAnswer(
            session=heartbeat.session,
            number=heartbeat.number,
            sent_ms=heartbeat.sent_ms,
            version=min(self._version, heartbeat.version) if is_present else -1,
            refused=list(self._refused.items()) if is_present else [],
            nonce=self._nonce,
        )

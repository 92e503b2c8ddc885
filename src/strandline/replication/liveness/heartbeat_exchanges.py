"""Exchanges heartbeats with each peer: one exchange serves both directions.

Why:    between two idle brokers each message is a packet. If no message follows, TCP acknowledges
        it by a packet of its own. One exchange has three or four packets. If each broker sent a
        heartbeat and got an answer, there would be eight.
How:    A's timer fires first. All goes over the connection that A opened, so that each message
        acknowledges the one before:

            A                                        B
            heartbeat (begins) ----------------------> its own timer starts again
              <---------------------------- answer, its own heartbeat
            answer, if B needs it -------------------> otherwise it goes with A's next heartbeat

        B needs the answer at once if a lease or a change rests on it: B leads something towards A,
        or B's heartbeat brings a change or lacks A's nonce (`FollowSession.can_wait`).
            The broker that leads something begins, because the other one can wait for its answer;
        if both do, or neither, the one that began last. The other one's timer is later by
        `heartbeat_interval_ms`, and fires only if no exchange comes. Each broker begins now and
        then, so that a dead connection of its own is noticed (`OWN_CONNECTION_MS`).
            A broker begins its exchanges with all peers towards which it leads something together:
        when it dies, their time-outs end together, and the first candidate finds its voters free.
            A heartbeat whose answer is overdue is repeated over the connection that the peer
        opened, and then over each connection in turn: a lost packet, or a dead connection, delays
        only one of them. Appends need a connection of this broker's own. So if a peer is heard, but
        has sent nothing over that connection for too long, the connection is replaced
        (`_renew_dead`). While none is up, no heartbeat is sent: followers then elect a leader that
        can send appends.
            While a peer is silent, for two election time-outs, the others that this broker leads
        get a heartbeat each `heartbeat_interval_ms`, too: what it decides about the silent one
        depends on which of them answer (`broker.groups.promised_write_quorums`).
            Changes go out at the end of the pass; all else that is not settled, and peers of
        earlier releases, get a heartbeat each `heartbeat_interval_ms`.
Owns:   when the next heartbeat to each peer is due, and the answers that wait for it; one per
        broker.
Source: decision 0073; design section 5."""

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from strandline.base.clock import Clock
from strandline.base.network import Lane, Network
from strandline.model.ids import BrokerId
from strandline.replication.liveness.exchange_interval import exchange_interval_ms
from strandline.replication.liveness.peer_contacts import PeerContacts
from strandline.replication.liveness.sessions import NEVER_MS
from strandline.replication.settings import ReplicationSettings
from strandline.replication.wire import Ability, Exchange, Heartbeat, Kind, encode_control

OWN_CONNECTION_MS = 10_000
"""A broker begins an exchange over the connection that it opened about this often."""
SILENT_ROUND_TRIPS = 4
"""A connection counts as dead if its peer is heard, but has sent nothing over it for an election
time-out and so many round trips. By then TCP has sent a lost packet at least twice more."""
TICKS_PER_HEARTBEAT = 2
FAR_AWAY_MS = 1 << 60


@dataclass(slots=True)
class _Pair:
    """What is under way with one peer."""

    # When the latest heartbeat left.
    sent_ms: int = NEVER_MS
    # The same, over the connection that this broker opened.
    own_connection_ms: int = NEVER_MS
    # When the earliest heartbeat left over it since the peer last sent something over it.
    own_silent_ms: int = FAR_AWAY_MS
    # The earliest heartbeat that the peer answers at once and has not answered, and when it left.
    awaited_number: int = 0
    awaited_ms: int = NEVER_MS
    # Whether the latest heartbeat went over the connection that the peer opened.
    went_back: bool = False
    # Whether the peer began the latest exchange.
    peer_began: bool = False
    # A heartbeat whose answer goes with the next one of this broker, and when it came.
    held: tuple[Heartbeat, int] | None = None


class HeartbeatExchanges:
    """See the module. `peers`: all other brokers, kept up to date by its owner."""

    def __init__(
        self,
        peers: Collection[BrokerId],
        *,
        self_id: BrokerId,
        contacts: PeerContacts,
        network: Network,
        clock: Clock,
        settings: ReplicationSettings,
    ) -> None:
        self._self_id = self_id
        self._peers = peers
        self._contacts = contacts
        self._network = network
        self._clock = clock
        self._settings = settings
        self._least_ms = settings.heartbeat_interval_ms
        self.tick_ms = max(1, settings.heartbeat_interval_ms // TICKS_PER_HEARTBEAT)
        self._pairs: dict[BrokerId, _Pair] = {}
        # Peers to which this broker's leaderships have changed in this pass.
        self._changed: dict[BrokerId, None] = {}
        self._misses_answer = False
        self._is_stopped = False
        contacts.on_change = self._on_change

    def stop(self) -> None:
        """Send nothing from now on."""
        self._is_stopped = True

    def is_overdue(self, peer: BrokerId) -> bool:
        """Whether `peer` should have answered a heartbeat by now, and has not, or hung up."""
        has_hung_up = self._contacts.has_hung_up(peer)
        return has_hung_up or self._clock.monotonic_ms() >= self._overdue_ms(peer)

    def remove(self, peer: BrokerId) -> None:
        """A broker has left the cluster."""
        self._pairs.pop(peer, None)

    # ---- time ------------------------------------------------------------------------------------

    def tick(self) -> int:
        """Begin the exchanges that are due, half a tick early or late. Returns how many ms later to
        tick again: then an answer is overdue, or a tick has passed."""
        now = self._clock.monotonic_ms()
        until_ms = now + self.tick_ms // 2
        self._renew_dead(now)
        self._misses_answer = any(self._is_missed(one) for one in self._peers)
        due = [one for one in self._peers if until_ms >= self._due_ms(one, now)]
        if any(self._contacts.lead_session(one).leads_any for one in due):
            due += [one for one in self._peers if one not in due and self._may_join(one, now)]
        for peer in due:
            if self._is_connected(peer):
                self._begin(peer, self._pair(peer), now)
        overdue = [self._overdue_ms(one) - now for one in self._peers]
        return min(self.tick_ms, min((one for one in overdue if one > 0), default=FAR_AWAY_MS))

    def on_connected(self, peer: BrokerId) -> None:
        """A connection to `peer` is up: a release of any age may be there now."""
        now = self._clock.monotonic_ms()
        pair = self._pair(peer)
        self._note_sent(pair, now, is_own=True)
        pair.own_silent_ms = now
        heartbeat = self._contacts.lead_session(peer).heartbeat(now)
        self._await(peer, pair, heartbeat, now)
        self._network.send(peer, Lane.CONTROL, [encode_control(Kind.HEARTBEAT, heartbeat)])

    def _due_ms(self, peer: BrokerId, now: int) -> int:
        """When the next heartbeat is due."""
        pair = self._pair(peer)
        if now >= self._overdue_ms(peer):
            is_first = pair.sent_ms == pair.awaited_ms
            return now if is_first else pair.sent_ms + self._least_ms
        if not self._is_settled(peer, now):
            return pair.sent_ms + self._least_ms
        due_ms = pair.sent_ms + self._interval_ms(peer)
        if self._misses_answer and self._contacts.lead_session(peer).leads_any:
            return pair.sent_ms + self._least_ms
        if now - pair.own_connection_ms >= OWN_CONNECTION_MS:  # Before the peer's next one leaves.
            early_ms = int(self._contacts.rtt_ms(peer)) + self.tick_ms
            return max(due_ms - early_ms, pair.sent_ms + self._least_ms)
        return due_ms + self._least_ms if self._peer_begins(peer, pair) else due_ms

    def _may_join(self, peer: BrokerId, now: int) -> bool:
        """Whether an exchange may begin together with those that are due: half of its interval has
        passed, and this broker leads something towards the peer."""
        return (
            self._contacts.lead_session(peer).leads_any
            and self._is_settled(peer, now)
            and now - self._pair(peer).sent_ms >= self._interval_ms(peer) // 2
        )

    def _interval_ms(self, peer: BrokerId) -> int:
        return exchange_interval_ms(self._settings, self._contacts.rtt_ms(peer))

    def _is_settled(self, peer: BrokerId, now: int) -> bool:
        """Whether the peer exchanges heartbeats, is heard, and knows what this broker leads."""
        lead, follow = self._contacts.leads.get(peer), self._contacts.follows.get(peer)
        return (
            lead is not None
            and follow is not None
            and Ability.EXCHANGES in follow.abilities
            and follow.is_fresh(now)
            and lead.is_settled
        )

    def _overdue_ms(self, peer: BrokerId) -> int:
        """When an answer that the peer sends at once should be here; far away without one."""
        pair, lead = self._pair(peer), self._contacts.lead_session(peer)
        if lead.answered_number >= pair.awaited_number:
            return FAR_AWAY_MS
        return pair.awaited_ms + int(lead.rtt_ms) + self.tick_ms

    def _is_missed(self, peer: BrokerId) -> bool:
        """Whether a peer that this broker leads has fallen silent lately."""
        if not self._contacts.lead_session(peer).leads_any:
            return False
        return self.is_overdue(peer) and self._contacts.is_alive(peer)

    def _peer_begins(self, peer: BrokerId, pair: _Pair) -> bool:
        """Whether the next exchange should be the peer's."""
        lead, follow = self._contacts.lead_session(peer), self._contacts.follow_session(peer)
        if lead.leads_any != bool(follow.followed):
            return not lead.leads_any
        return pair.peer_began

    # ---- changes ---------------------------------------------------------------------------------

    def _on_change(self, peer: BrokerId) -> None:
        if not self._changed:
            self._clock.call_soon(self._send_changes)
        self._changed[peer] = None

    def _send_changes(self) -> None:
        """Send a heartbeat to each peer to which something has changed, unless one has just left:
        the tick sends the next one then."""
        changed, self._changed = self._changed, {}
        if self._is_stopped:
            return
        now = self._clock.monotonic_ms()
        for peer in changed:
            if peer not in self._peers:
                continue
            pair = self._pair(peer)
            if now - pair.sent_ms >= self._least_ms and self._is_connected(peer):
                self._begin(peer, pair, now)

    # ---- connections -----------------------------------------------------------------------------

    def on_came_back(self, peer: BrokerId) -> None:
        """Something has come over the connection that this broker opened."""
        self._pair(peer).own_silent_ms = FAR_AWAY_MS

    def _is_connected(self, peer: BrokerId) -> bool:
        return self._network.is_connected(peer, Lane.CONTROL)

    def _renew_dead(self, now: int) -> None:
        """Renew the connections to peers that are heard, but send nothing back over them."""
        for peer in list(self._peers):
            pair, follow = self._pair(peer), self._contacts.follow_session(peer)
            patience_ms = SILENT_ROUND_TRIPS * self._contacts.rtt_ms(peer)
            patience_ms += self._settings.election_timeout_ms
            if not follow.is_fresh(now):
                pair.own_silent_ms = FAR_AWAY_MS
            elif now - pair.own_silent_ms >= patience_ms:
                pair.own_silent_ms = FAR_AWAY_MS
                if Ability.EXCHANGES in follow.abilities:
                    self._network.renew(peer)

    # ---- messages --------------------------------------------------------------------------------

    def on_heartbeat(
        self, peer: BrokerId, heartbeat: Heartbeat, *, begins: bool = True, came_back: bool = False
    ) -> None:
        """Answer a heartbeat of a peer that was applied or skipped.

        `begins`: the peer waits for this broker's heartbeat. `came_back`: it came over the
        connection that this broker opened."""
        follow = self._contacts.follow_session(peer)
        if peer not in self._peers or not follow.is_answered(heartbeat):
            return
        if Ability.EXCHANGES not in Ability(heartbeat.abilities):
            body = encode_control(Kind.HEARTBEAT_ANSWER, follow.answer(heartbeat))
            self._network.send(peer, Lane.CONTROL, [body])
            return
        now = self._clock.monotonic_ms()
        pair = self._pair(peer)
        own: Heartbeat | None = None
        if begins and follow.is_latest(heartbeat) and self._is_connected(peer):
            has_crossed = now - pair.sent_ms < self._contacts.rtt_ms(peer)
            pair.peer_began = not has_crossed or peer < self._self_id
            if not has_crossed:
                lead = self._contacts.lead_session(peer)
                own = lead.heartbeat(now)
                self._note_sent(pair, now, is_own=came_back)
                if lead.leads_any or not lead.is_settled:
                    self._await(peer, pair, own, now)
        elif not begins and follow.can_wait(heartbeat):
            pair.held = heartbeat, now
            return
        pair.held = None
        exchange = Exchange(begins=False, heartbeat=own, answer=follow.answer(heartbeat))
        self._send(peer, exchange, back=not came_back)

    def _begin(self, peer: BrokerId, pair: _Pair, now: int) -> None:
        lead, follow = self._contacts.lead_session(peer), self._contacts.follow_session(peer)
        is_overdue = now >= self._overdue_ms(peer)
        heartbeat = lead.heartbeat(now)
        self._await(peer, pair, heartbeat, now)
        pair.peer_began = False
        back = is_overdue and not pair.went_back
        if Ability.EXCHANGES in follow.abilities:
            exchange = Exchange(begins=True, heartbeat=heartbeat)
            if pair.held is not None:
                held, held_since_ms = pair.held
                exchange = msgspec.structs.replace(
                    exchange, answer=follow.answer(held), held_ms=now - held_since_ms
                )
            pair.held = None
            back = self._send(peer, exchange, back=back)
        else:
            back = False
            self._network.send(peer, Lane.CONTROL, [encode_control(Kind.HEARTBEAT, heartbeat)])
        self._note_sent(pair, now, is_own=not back)
        if not back:
            pair.own_silent_ms = min(pair.own_silent_ms, now)
        pair.went_back = back

    def _send(self, peer: BrokerId, exchange: Exchange, *, back: bool) -> bool:
        """Send over the connection that the peer opened (`back`) or this broker's own, or over the
        other one if that is not up. Returns whether it went over the peer's."""
        for way in (back, not back):
            message = [encode_control(Kind.EXCHANGE, _on_way(exchange, came_back=way))]
            if way and self._network.reply(peer, Lane.CONTROL, message):
                return True
            if not way and self._network.send(peer, Lane.CONTROL, message):
                return False
        return False

    def _await(self, peer: BrokerId, pair: _Pair, heartbeat: Heartbeat, now: int) -> None:
        """The peer answers this heartbeat at once."""
        if self._contacts.lead_session(peer).answered_number >= pair.awaited_number:
            pair.awaited_number, pair.awaited_ms = heartbeat.number, now

    def _note_sent(self, pair: _Pair, now: int, *, is_own: bool) -> None:
        pair.sent_ms = now
        if is_own:
            pair.own_connection_ms = now

    def _pair(self, peer: BrokerId) -> _Pair:
        pair = self._pairs.get(peer)
        if pair is None:
            pair = self._pairs[peer] = _Pair()
        return pair


def _on_way(exchange: Exchange, *, came_back: bool) -> Exchange:
    return msgspec.structs.replace(exchange, came_back=came_back)

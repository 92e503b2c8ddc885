"""Planted mistakes, each of which the schedules must find.

Why:    a simulation that cannot find a known mistake says nothing about unknown ones.
How:    a mutant replaces methods of the core, or of the simulated driver, while it is `planted`.
        The mistakes are those that people made: they are named after what was forgotten.
Source: reliability notes 1b and 6.2; Raft thesis, figures 3.7 and 4.3."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from tests.raft.cluster.node import Node

from strandline.raft import events, messages
from strandline.raft.core import Raft
from strandline.raft.election.election import Elections
from strandline.raft.election.timeout_now import TransferRequests
from strandline.raft.election.transfer import Transfers
from strandline.raft.election.vote_delegation import delegated_votes_elect
from strandline.raft.follower.appends import Appends
from strandline.raft.follower.peer_catchup import PeerCatchup
from strandline.raft.follower.rejoin import Rejoin
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.membership import Membership
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader.configuration_change import ConfigurationChanges
from strandline.raft.leader.leading import Leading
from strandline.raft.state import RaftState
from strandline.raft.transitions import Cause, Role


@dataclass(frozen=True)
class Mutant:
    """`patches` is [(class, attribute, replacement)]; `seed` is a schedule that finds it."""

    name: str
    seed: int
    patches: tuple[tuple[type, str, Any], ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The mistake is there while this lasts."""
        originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in self.patches]
        for owner, name, replacement in self.patches:
            setattr(owner, name, replacement)
        try:
            yield
        finally:
            for owner, name, original in originals:
                setattr(owner, name, original)


MUTANTS: dict[str, Mutant] = {}


def _mutant(
    owner: type, name: str, *, seed: int, also: tuple[tuple[type, str, Any], ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the decorated function, under its own name, as a replacement for `owner.name`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        title = function.__name__.strip("_")
        replacement: Any = function
        if isinstance(owner.__dict__[name], property):
            replacement = property(function)
        MUTANTS[title] = Mutant(title, seed, ((owner, name, replacement), *also))
        return function

    return register


# ---- votes ---------------------------------------------------------------------------------------


@_mutant(RaftState, "adopt", seed=445)
def vote_not_persisted(self: Any, epoch: int, *, vote: int) -> None:
    self.epoch = epoch
    self.vote = vote
    self.effects.append(events.PersistState(epoch, -1))


_step = Raft.step


@_mutant(Raft, "step", seed=793)
def vote_persisted_after_the_answer(self: Any, event: Any) -> list[Any]:
    effects = _step(self, event)
    effects.sort(key=lambda effect: type(effect) is events.PersistState)
    return effects


_on_vote_request = Elections.on_vote_request


@_mutant(Elections, "on_vote_request", seed=7)
def two_votes_an_epoch(self: Any, sender: int, message: Any, *, leader_alive: bool) -> None:
    state = self._state
    if not message.pre and message.epoch == state.epoch and state.leader < 0:
        state.vote = -1
    _on_vote_request(self, sender, message, leader_alive=leader_alive)


@_mutant(Elections, "on_vote_request", seed=2)
def vote_for_a_shorter_log(self: Any, sender: int, message: Any, *, leader_alive: bool) -> None:
    longest = messages.VoteRequest(message.epoch, 1 << 40, 1 << 40, message.pre, message.transfer)
    _on_vote_request(self, sender, longest, leader_alive=leader_alive)


@_mutant(Elections, "on_vote_request", seed=21)
def vote_by_last_index_alone(self: Any, sender: int, message: Any, *, leader_alive: bool) -> None:
    log = self._state.log
    epoch = log.last_epoch if message.last_index >= log.last_index else 0
    request = messages.VoteRequest(
        message.epoch, message.last_index, epoch, message.pre, message.transfer
    )
    _on_vote_request(self, sender, request, leader_alive=leader_alive)


@_mutant(Configuration, "wins_election", seed=8)
def half_is_a_majority(self: Any, granted: Any) -> bool:
    return all(
        2 * sum(voter in granted for voter in voters) >= len(voters)
        for voters in (self.voters, self.old_voters)
    )


@_mutant(Configuration, "wins_election", seed=1222)
def joint_elections_ask_the_new_voters_only(self: Any, granted: Any) -> bool:
    return 2 * sum(voter in granted for voter in self.voters) > len(self.voters)


# ---- entries that peers send ---------------------------------------------------------------------


def _all_of_the_log(self: Any, fetch_source: int) -> int:
    return int(self.log.last_index)


@_mutant(
    PeerCatchup, "may_serve_peer", seed=3_000_004, also=((Raft, "peer_fetch_end", _all_of_the_log),)
)
def serves_peers_what_is_not_committed(self: Any, request: Any) -> bool:
    log = self._state.log
    is_here = log.first_index <= request.prev_index + 1
    return bool(is_here and request.runs[-1].last_index <= log.last_index)


@_mutant(PeerCatchup, "on_peer_append", seed=3_000_024)
def takes_peer_entries_that_do_not_join_on(
    self: Any, sender: int, message: Any, *, leader_alive: bool
) -> None:
    request = message.request
    if self._follows(request):
        self._appends._take_over(request)
        self._appends._matched = max(self._appends._matched, request.runs[-1].last_index)
        self._appends._acknowledge(self._state.leader)


@_mutant(PeerCatchup, "on_peer_append", seed=3_000_003)
def takes_the_fetch_source_for_the_leader(
    self: Any, sender: int, message: Any, *, leader_alive: bool
) -> None:
    self._appends.on_append_request(sender, message.request, leader_alive=leader_alive)


@_mutant(PeerCatchup, "on_peer_append", seed=5_000_012)
def takes_peer_entries_for_committed(
    self: Any, sender: int, message: Any, *, leader_alive: bool
) -> None:
    """As it is; what a relay hands on is new."""
    request = message.request
    if self._follows(request):
        end = request.runs[-1].last_index
        request = msgspec.structs.replace(request, commit=max(end, request.commit))
        self._appends.on_append_request(self._state.leader, request, leader_alive=leader_alive)


# ---- leadership handed over ----------------------------------------------------------------------


@_mutant(TransferRequests, "try_pending", seed=1_000_018)
def stands_without_all_that_timeout_now_names(self: Any) -> None:
    """The vote that comes with it is for a log that has everything."""
    state = self._state
    sender, request = state.pending_request
    if isinstance(request, messages.LeaderContact):
        _obey(self)
        return
    state.pending_request = None
    if request.epoch == state.epoch and state.role < Role.CANDIDATE:
        self._elections.stand_on_request(sender, request)


_obey = TransferRequests.try_pending


@_mutant(RaftState, "hand_over", seed=168)
def vote_of_the_transfer_not_persisted(self: Any, transfer_target: int) -> None:
    self.epoch += 1
    self.vote = transfer_target
    self.become(Cause.HANDED_OVER, -1, transfer_target=transfer_target)


@_mutant(Elections, "_on_transfer_vote", seed=1_003_303)
def requested_vote_counts_in_any_election(self: Any, sender: int, message: Any) -> None:
    """It is for a log with the end named, and a candidate by time-out may lack that."""
    if self._state.role == Role.CANDIDATE and message.epoch == self._state.epoch:
        self._granted.add(sender)
        self._lead_if_elected()
    else:
        _on_transfer_vote(self, sender, message)


_on_transfer_vote = Elections._on_transfer_vote


@_mutant(TransferRequests, "_vote", seed=1_001_403)
def requested_vote_not_persisted(self: Any, request: Any) -> None:
    self._state.epoch += 1
    self._state.vote = request.transfer_target
    self._state.become(Cause.VOTE_REQUESTED_BY_LEADER, -1)
    vote = messages.VoteResponse(self._state.epoch, True, True, transfer_end=request.last_index)
    self._state.send(request.transfer_target, vote)


# ---- delegated votes -----------------------------------------------------------------------------


@_mutant(RaftState, "persist", seed=2_013_675)
def delegation_not_persisted(self: Any) -> None:
    self.effects.append(events.PersistState(self.epoch, self.vote))


@_mutant(Elections, "_is_delegated", seed=2_011_186)
def delegated_vote_given_after_a_time_out(self: Any, sender: int, message: Any) -> bool:
    return False


@_mutant(Transfers, "_hand_over", seed=2_000_796)
def delegated_votes_given_for_a_log_that_grows_on(
    self: Any, leader_state: Any, target: Any
) -> None:
    """TimeoutNow names the log's end of when the votes were delegated."""
    state = self._state
    length = state.log.last_index
    if not delegated_votes_elect(state, leader_state, target.peer) or not leader_state.delegators:
        _hand_over(self, leader_state, target)
        return
    state.log.last_index = max(leader_state.transfer_from, 0)
    try:
        _hand_over(self, leader_state, target)
    finally:
        state.log.last_index = length


_hand_over = Transfers._hand_over


# ---- acknowledgements ----------------------------------------------------------------------------


@_mutant(Appends, "_acknowledge", seed=0)
def acknowledged_before_the_flush(self: Any, sender: int) -> None:
    state = self._state
    state.send(sender, messages.AppendResponse(state.epoch, True, self._matched, self._matched))


@_mutant(Appends, "_acknowledge", seed=3)
def unmatched_tail_acknowledged(self: Any, sender: int) -> None:
    state = self._state
    log = state.log
    state.send(sender, messages.AppendResponse(state.epoch, True, self._matched, log.flushed_index))


@_mutant(Raft, "_on_log_flushed", seed=44)
def stale_flush_counts(self: Any, event: Any) -> None:
    state = self.state
    index = min(event.index, state.log.last_index)
    if index > state.log.flushed_index:
        state.log.flushed_index = index
        if state.leader_state is not None:
            self._leading.on_flushed(state.leader_state)
        else:
            self._appends.on_flushed()


@_mutant(Quorums, "flushed", seed=0)
def own_flush_not_awaited(self: Any, limit: int) -> int:
    for voters, position in self._sets:
        limit = min(limit, sorted(max(v.match_flushed, v.match_written) for v in voters)[position])
    return limit


@_mutant(Quorums, "__init__", seed=0)
def observers_counted_as_voters(self: Any, configuration: Any, progress: Any) -> None:
    members = list(progress.values())
    self._sets = [(members, len(members) - len(configuration.voters) // 2 - 1)]


@_mutant(Quorums, "__init__", seed=0)
def commit_by_half(self: Any, configuration: Any, progress: Any) -> None:
    voters = [progress[voter] for voter in configuration.voters if voter in progress]
    self._sets = [(voters, len(voters) - max(1, len(voters) // 2))] if voters else []


@_mutant(Leading, "advance", seed=8221)
def older_entries_committed_by_counting(self: Any, leader_state: Any) -> None:
    first, leader_state.first_index = leader_state.first_index, 0
    try:
        _advance(self, leader_state)
    finally:
        leader_state.first_index = first


_advance = Leading.advance


@_mutant(Leading, "advance", seed=0)
def visible_by_writes_alone(self: Any, leader_state: Any) -> None:
    if self._state.leader_state is leader_state:
        leader_state.unflushed_visible_last = self._state.log.last_index
    _advance(self, leader_state)


# ---- appends -------------------------------------------------------------------------------------


_has = Appends._has
_accept_leader = Appends._accept_leader
_take_marks = Appends._take_marks
_take_over = Appends._take_over


@_mutant(Appends, "_has", seed=5)
def previous_epoch_not_compared(self: Any, index: int, epoch: int) -> bool:
    return bool(index <= self._state.log.last_index)


@_mutant(Appends, "_accept_leader", seed=399)
def epoch_of_the_leader_not_checked(self: Any, sender: int, epoch: int) -> bool:
    if epoch < self._state.epoch and not self._state.leader_state:
        return True
    return _accept_leader(self, sender, epoch)


@_mutant(Appends, "_take_over", seed=0)
def every_append_cuts_what_follows(self: Any, message: Any) -> bool:
    state = self._state
    end = message.runs[-1].last_index if message.runs else message.prev_index
    if message.runs and message.prev_index >= state.commit and end < state.log.last_index:
        first = message.prev_index + 1
        state.log.truncate(first)
        state.effects.append(events.TruncateLog(first))
        self._membership.refresh()
    return _take_over(self, message)


@_mutant(Appends, "_take_marks", seed=1)
def marks_beyond_what_matches(self: Any, commit: int, visible: int) -> None:
    self._matched = max(self._matched, self._state.log.last_index)
    _take_marks(self, commit, visible)


@_mutant(Appends, "_take_over", seed=0)
def cut_below_the_commit(self: Any, message: Any) -> bool:
    """Redpanda #25018: what lies below the start or the commit is not skipped."""
    state = self._state
    if message.runs and state.log.first_index <= message.prev_index + 1 <= state.commit:
        first = message.prev_index + 1
        state.log.truncate(first)
        state.effects.append(events.TruncateLog(first))
    return _take_over(self, message)


@_mutant(Leading, "on_refused", seed=344)
def next_after_the_hint_unprobed(self: Any, progress: Any, response: Any) -> None:
    _on_refused(self, progress, response)
    progress.probe_is_empty = False


_on_refused = Leading.on_refused


# ---- members -------------------------------------------------------------------------------------


@_mutant(ConfigurationChanges, "on_change", seed=706)
def voters_changed_without_a_joint_phase(self: Any, event: Any) -> None:
    if self.refusal(event) is None:
        final = Configuration(event.voters, (), event.observers, event.min_insync)
        self._leading.append_marker(self._state.leader_state, final)


@_mutant(ConfigurationChanges, "on_change", seed=4_002_485)
def a_smaller_write_quorum_ends_the_joint_phase(self: Any, event: Any) -> None:
    """Committed or not, the new voters are in force alone."""
    if self.refusal(event) is None and self._only_lowers(event):
        final = Configuration(event.voters, (), event.observers, event.min_insync)
        self._leading.append_marker(self._state.leader_state, final)
    else:
        _on_change(self, event)


_on_change = ConfigurationChanges.on_change


@_mutant(Membership, "is_committed", seed=12)
def two_changes_at_once(self: Any) -> bool:
    return True


@_mutant(Membership, "refresh", seed=382)
def truncated_configuration_stays(self: Any) -> None:
    if self._state.log.configurations and self._last()[0] > self._index:
        _refresh(self)


_refresh = Membership.refresh


@_mutant(Membership, "may_campaign", seed=2)
def observers_campaign(self: Any) -> bool:
    return True


@_mutant(Membership, "on_removal_reported", seed=12)
def removed_members_ask_for_ever(self: Any, removal: Any) -> None:
    pass


@_mutant(Membership, "position", seed=110)
def removed_once_and_for_all(self: Any) -> Any:
    """Members that are added again never stand again."""
    return 0, -1


# ---- lost disks ----------------------------------------------------------------------------------


@_mutant(Node, "wipe", seed=155)
def lost_disk_not_noticed(self: Any) -> None:
    _wipe(self)
    self.disk.is_whole = True


_wipe = Node.wipe


@_mutant(Rejoin, "is_due", seed=448)
def rejoins_at_the_first_commit_heard(self: Any, matched: int) -> bool:
    """The rule that seems to do: caught up with the commit of the leader first heard."""
    state = self._state
    if not state.lost_state or min(matched, state.log.flushed_index) < state.commit:
        return False
    state.lost_state = False
    state.effects.append(events.Rejoined(state.commit))
    return True


# ---- mistakes that were made here ----------------------------------------------------------------


def _on_accepted_then(self: Any, leader_state: Any, progress: Any, response: Any) -> None:
    """What followed from a match that was too high, when that mistake was made."""
    was_probing = progress.is_probing
    _on_accepted(self, leader_state, progress, response)
    if was_probing and not progress.is_probing:
        progress.next_index = progress.match_written + 1


_on_accepted = Leading.on_accepted


@_mutant(Leading, "on_refused", seed=6700, also=((Leading, "on_accepted", _on_accepted_then),))
def hint_taken_for_a_match(self: Any, progress: Any, response: Any) -> None:
    """Relaxed entries that the peer had lost counted, and a batch was cut in two."""
    before, last_sent = progress.match_written, progress.last_sent
    _on_refused(self, progress, response)
    if response.hint < last_sent:
        progress.match_written = min(before, response.hint)


@_mutant(Leading, "on_propose", seed=296)
def emptied_log_forgets_its_epoch(self: Any, event: Any) -> None:
    """After retention had taken all, new entries had no epoch."""
    log = self._state.log
    was_empty = not log.epochs
    _on_propose(self, event)
    if was_empty:
        log.epochs.clear()


_on_propose = Leading.on_propose


@_mutant(Rejoin, "is_due", seed=87)
def rejoin_needs_the_write_quorum(self: Any, matched: int) -> bool:
    """Where all voters make the write quorum, the marker could never commit."""
    return bool(self._state.commit >= self._index) and _is_due(self, matched)


_is_due = Rejoin.is_due

"""How a replica performs each effect of its Raft core: one function per effect, one table.

Why:    the core decides, the driver does; nothing here decides.
How:    `PERFORM[type(effect)](replica, effect, entries)`, in the order given. `PersistState` is not
        in the table: it suspends the replica (`Replica.step`), as `ResetLog` does before it is
        performed.
Source: STYLE, rules 1 and 7; `raft.events` for what each effect asks."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import msgspec

from strandline.model.ids import NO_BROKER, Index
from strandline.raft.events import (
    AppendEntries,
    AppendMarker,
    BecameFollower,
    BecameLeader,
    ConfigurationChanged,
    FoundOutdated,
    LendEntries,
    MarksAdvanced,
    PeerRefused,
    RejoinAsked,
    Rejoined,
    ReplicationReady,
    ResetLog,
    Send,
    TruncateLog,
)
from strandline.raft.messages import Fenced, VoteResponse
from strandline.records.marker import build_configuration_marker, build_epoch_marker
from strandline.replication.leader.leadership import Leading
from strandline.replication.replica.entries import Entries

if TYPE_CHECKING:
    from strandline.replication.replica.replica import Replica

_log = logging.getLogger("strandline.replication")


def _send(replica: "Replica", effect: Send, _: Entries | None) -> None:
    message = effect.message
    if isinstance(message, Fenced):
        replica.host.fencing.on_fenced(replica.group, message)
        return
    if isinstance(message, VoteResponse) and message.granted and not message.promised:
        replica.host.liveness.await_election(replica)
    replica.host.send_soon(effect.to, replica.group, message)


def _truncate_log(replica: "Replica", effect: TruncateLog, _: Entries | None) -> None:
    _log.info("%s: cutting the log from index %d", replica.name, effect.from_index)
    replica.fail_waiters()
    replica.log.truncate(effect.from_index)
    replica.high_watermark = min(replica.high_watermark, replica.log.end_offset)


def _append_entries(replica: "Replica", effect: AppendEntries, entries: Entries | None) -> None:
    assert entries is not None
    buffers, headers = entries.from_index(effect.first_index)
    replica.log.append(buffers, headers)
    replica.flush(may_wait=entries.may_wait)


def _append_marker(replica: "Replica", effect: AppendMarker, _: Entries | None) -> None:
    assert replica.leading is not None
    log = replica.log
    assert effect.index == log.last_index + 1
    now = replica.host.clock.wall_ms()
    if effect.configuration is None:
        marker = build_epoch_marker(log.end_offset, effect.epoch, now)
    else:
        payload = msgspec.json.encode(effect.configuration)
        marker = build_configuration_marker(log.end_offset, effect.epoch, payload, now)
    replica.leading.append_marker(
        bytes(marker), epoch=effect.epoch, configuration=effect.configuration
    )


def _reset_log(replica: "Replica", effect: ResetLog, _: Entries | None) -> None:
    _log.info("%s: beginning anew at index %d", replica.name, effect.start_index)
    replica.fail_waiters()
    replica.log.reset_to(
        effect.start_index, effect.start_offset, previous_epoch=effect.previous_epoch
    )
    replica.high_watermark = max(replica.high_watermark, effect.start_offset)


def _marks_advanced(replica: "Replica", effect: MarksAdvanced, _: Entries | None) -> None:
    replica.update_marks(effect.commit, effect.visible)


def _became_leader(replica: "Replica", effect: BecameLeader, _: Entries | None) -> None:
    replica.is_fresh = False
    replica.leading = Leading(replica)
    replica.host.led.add(replica)
    replica.leading_since_ms = replica.host.clock.monotonic_ms()
    replica.host.liveness.on_leading(replica, replica.configuration.members)
    replica.host.announce(replica, effect.epoch)
    replica.handing_over.on_leader()
    for callback in replica.host.on_elected:
        callback(replica)


def _became_follower(replica: "Replica", effect: BecameFollower, _: Entries | None) -> None:
    replica.told_outlived = Index(-1)
    if effect.leader != NO_BROKER:
        replica.is_fresh = False
        replica.host.learn_leader(replica.group, effect.epoch, effect.leader)
    if effect.transfer_target != NO_BROKER:
        replica.handing_over.begin()
    else:
        if replica.handing_over.is_under_way:
            replica.handing_over.on_follower(effect.leader)
        else:
            replica.stop_leading()
        replica.host.liveness.on_following(replica)
    replica.watchers.notify()


def _replication_ready(replica: "Replica", effect: ReplicationReady, _: Entries | None) -> None:
    if replica.leading is not None:
        replica.leading.pump(effect.peer)


def _peer_refused(replica: "Replica", effect: PeerRefused, _: Entries | None) -> None:
    if replica.leading is not None:
        replica.leading.on_refused(effect.peer)


def _configuration_changed(
    replica: "Replica", effect: ConfigurationChanged, _: Entries | None
) -> None:
    _log.info(
        "%s: configuration %s at index %d%s",
        replica.name,
        effect.configuration,
        effect.index,
        ", committed" if effect.committed else "",
    )
    if effect.committed:
        replica.base = effect.configuration
        replica.host.persist_base(replica)
        for callback in replica.host.on_configuration:
            callback(replica, effect.index, effect.configuration)
    replica.lease.end()
    # The core may be ahead, and lead no more: its epoch is another one's by now.
    if replica.leading is not None and replica.raft.is_leader:
        replica.host.liveness.on_leading(replica, replica.configuration.members)


def _lend_entries(replica: "Replica", effect: LendEntries, _: Entries | None) -> None:
    replica.host.peer_catchup.add(replica, effect.order)


def _rejoin_asked(replica: "Replica", effect: RejoinAsked, _: Entries | None) -> None:
    for callback in replica.host.on_rejoin_asked:
        callback(replica)


def _found_outdated(replica: "Replica", effect: FoundOutdated, _: Entries | None) -> None:
    _log.warning(
        "%s: its log is from before others held the partition without it: beginning anew",
        replica.name,
    )
    for callback in replica.host.on_outdated:
        # Not from within the step that found it.
        replica.host.clock.call_soon(partial(callback, replica))


def _rejoined(replica: "Replica", effect: Rejoined, _: Entries | None) -> None:
    _log.info("%s: whole again as of index %d", replica.name, effect.index)
    replica.host.persist_base(replica)
    replica.host.liveness.moved_on(replica)


def _table() -> dict[type, Callable[["Replica", object, Entries | None], None]]:
    table = {
        Send: _send,
        TruncateLog: _truncate_log,
        AppendEntries: _append_entries,
        AppendMarker: _append_marker,
        ResetLog: _reset_log,
        MarksAdvanced: _marks_advanced,
        BecameLeader: _became_leader,
        BecameFollower: _became_follower,
        ReplicationReady: _replication_ready,
        PeerRefused: _peer_refused,
        ConfigurationChanged: _configuration_changed,
        LendEntries: _lend_entries,
        RejoinAsked: _rejoin_asked,
        FoundOutdated: _found_outdated,
        Rejoined: _rejoined,
    }
    return cast(dict[type, Callable[["Replica", object, Entries | None], None]], table)


PERFORM = _table()

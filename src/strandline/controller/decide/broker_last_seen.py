"""Records which brokers are silent, and which are heard again, for the next controller.

How:    Compare and set, broker by broker. A note that does not fit is left out: the controller
        looks again each second. The record is a registration with one more field, as in `labels`,
        so earlier versions read it correctly.
Source: decision 0010, "Damping"."""

import msgspec

from strandline.controller.decision import Decision, Facts
from strandline.controller.outage_commands import LastSeenNote, LastSeenNoted, NoteLastSeen


def decide_note_last_seen(facts: Facts, command: NoteLastSeen) -> Decision:
    """Record the notes that still fit."""
    notes = [one for one in command.notes if _fits(facts, one)]
    records = tuple(
        msgspec.structs.replace(
            facts.state.registration(one.broker),
            silent_ms=one.silent_ms,
            silent_since_ms=None if one.silent_ms is None else one.since_ms,
        )
        for one in notes
    )
    return Decision(LastSeenNoted(), records)


def _fits(facts: Facts, note: LastSeenNote) -> bool:
    cluster = facts.state.cluster
    if note.broker not in cluster.brokers or cluster.silent_ms.get(note.broker) != note.before_ms:
        return False
    if note.before_ms is None and note.silent_ms is None:
        return False
    return (note.silent_ms is None) == (note.broker in facts.alive)

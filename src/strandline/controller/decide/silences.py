"""Takes down who is silent, and who is heard again: the next controller need not begin anew.

How:    compare and set, broker by broker. What does not fit is left out: the controller looks
        again each second. The registration with that is the record, as in `labels`: versions that
        know nothing of it read it rightly.
Source: decision 0010, "Damping"."""

import msgspec

from strandline.controller.commands import NoteSilences, SilenceNote, SilencesNoted
from strandline.controller.decision import Decision, Facts


def decide_note_silences(facts: Facts, command: NoteSilences) -> Decision:
    """Note what still fits."""
    notes = [one for one in command.notes if _fits(facts, one)]
    records = tuple(
        msgspec.structs.replace(facts.state.registration(one.broker), silent_ms=one.silent_ms)
        for one in notes
    )
    return Decision(SilencesNoted(), records)


def _fits(facts: Facts, note: SilenceNote) -> bool:
    cluster = facts.state.cluster
    if note.broker not in cluster.brokers or cluster.silent_ms.get(note.broker) != note.before_ms:
        return False
    if note.before_ms is None and note.silent_ms is None:
        return False
    return (note.silent_ms is None) == (note.broker in facts.alive)

"""Takes down whose replicas take part again, having lost what they knew.

Why:    a broker's earlier data directory may be given back, and has forgotten what its replicas
        acknowledged and voted with the later one: only who was told of that can know.
How:    the record is a change of no configuration, with that: versions that know nothing of it read
        it rightly.
Source: decision 0030."""

from strandline.controller.commands import NoteRejoined, RejoinedNoted
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import ConfigsChanged, ReplicasRejoined
from strandline.protocol.errors import Error


def decide_note_rejoined(facts: Facts, command: NoteRejoined) -> Decision:
    """For the present start of the broker alone; groups that are no more are left out."""
    cluster = facts.state.cluster
    known = cluster.brokers.get(command.broker)
    if known is None or known.incarnation != command.incarnation:
        raise refuse(Error.STALE_BROKER_EPOCH, f"another start of broker {command.broker} is known")
    groups = tuple(one for one in command.groups if one in cluster.groups)
    if not groups:
        return Decision(RejoinedNoted())
    rejoined = ReplicasRejoined(command.broker, groups)
    return Decision(RejoinedNoted(), (ConfigsChanged("cluster", "", {}, rejoined=rejoined),))

"""Records which replicas take part again after they lost their state.

Why:    an operator may put an earlier data directory back. It lacks the acknowledgements and votes
        that the broker's replicas gave with the later one, and only this record shows that.
How:    the record is an empty change of configuration with one more field, so earlier versions read
        it correctly.
Source: decision 0030."""

from strandline.controller.commands import NoteRejoined, RejoinedNoted
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import ConfigsChanged, ReplicasRejoined
from strandline.protocol.errors import Error


def decide_note_rejoined(facts: Facts, command: NoteRejoined) -> Decision:
    """Record them for the present start of the broker; groups that are gone are left out."""
    cluster = facts.state.cluster
    known = cluster.brokers.get(command.broker)
    if known is None or known.incarnation != command.incarnation:
        raise refuse(Error.STALE_BROKER_EPOCH, f"another start of broker {command.broker} is known")
    groups = tuple(one for one in command.groups if one in cluster.groups)
    if not groups:
        return Decision(RejoinedNoted())
    rejoined = ReplicasRejoined(command.broker, groups)
    return Decision(RejoinedNoted(), (ConfigsChanged("cluster", "", {}, rejoined=rejoined),))

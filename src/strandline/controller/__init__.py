"""Decides about the whole cluster: brokers, topics, partitions, configuration, producer ids. Pure.

Map:    records.py (what the controller's log says), state.py (the only way it becomes a cluster),
        commands.py (what may be asked, and the answers), decide/ (one file per command family),
        decision.py (what deciding takes and gives), machine.py (which file decides which command),
        names.py (legal topic names), listing.py (the first few of what an answer names),
        assignments.py (which brokers new partitions get), policies.py (which they get by a
        placement policy), given.py (whether those that a client chose keep
        it), policy_changes.py (whether a changed policy can be met), label_changes.py
        (what other labels would mean for policies), life.py (whether the cluster can do without a
        broker), reports.py (what brokers tell of themselves), space.py (whether there is room for
        what leaves one), balancer/ (which move, so that it stays so), outages/ (which zones are
        down, and whose repair waits for a person), shares.py (what each broker may take of what
        moves may), arbiter.py (who leads a group next that has lost its quorum), sides.py
        (whose voters do not hear each other, and which of them go on), promotion.py (which observer
        votes meanwhile), survivors.py (what is left of one that cannot).
How:    command + committed state -> records to append + the answer, given once they are committed.
        Nothing here changes state but `ControllerState.replay`.
Source: design sections 3 and 7."""

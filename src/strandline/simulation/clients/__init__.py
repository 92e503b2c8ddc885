"""The load: producers, consumers, admin clients.

Map:    load.py               Load: all clients of a run
        clients.py            the way from clients to brokers and back
        connections.py        connections, each of which may lose one direction
        lookups.py            leaders, topic ids and end offsets, as clients look them up
        producers.py          producers
        consumers.py          consumers
        near_readers.py       consumers that read from the replica near them
        group_consumers.py    members of consumer groups
        table_readers.py      readers of compacted topics
        values.py             record values that clients recognise
        admins.py             what admin clients share
        deleters.py           DeleteRecords
        tier_uploads.py       uploads of tiered storage, without objects
        copies.py             a read-only copy in another cluster
        reassignments.py      AlterPartitionReassignments
        operators.py          changes of policies and labels
        loss_declarations.py  declare-lost
"""

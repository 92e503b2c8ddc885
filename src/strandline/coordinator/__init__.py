"""Consumer groups and their committed offsets, for one partition of `__consumer_offsets`. Pure.

Map:    coordinator.py (Coordinator: the groups of one partition), machine.py (GroupMachine: one
        group; which file handles which event), group.py (a group's state and its moves), members.py
        (members, votes for a protocol), joining.py, rebalance.py, syncing.py, leaving.py
        (the classic protocol, by phase), commits.py, expiry.py, offset_deletion.py (offsets),
        subscriptions.py (which topics members read), requests.py, answers.py, effects.py (events
        and effects), log_records.py (Kafka's schema of the log), replay.py (the log read back),
        descriptions.py (describe and list), settings.py, partitioning.py (the partition of a
        group), write_errors.py (error codes for clients if the log did not accept a record).
How:    Empty --a member joins--> PreparingRebalance --all joined, or time is up-->
        CompletingRebalance --the leader's assignment is committed--> Stable --a member joins,
        leaves or is silent--> PreparingRebalance;   Empty --deleted, or all offsets expired--> Dead
Source: Kafka's classic group protocol (KIP-62, 134, 345, 394, 559, 800, 814); design section 3."""

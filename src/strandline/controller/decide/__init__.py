"""Deciding, one file per command family: `decide(facts, command) -> Decision`.

Map:    brokers.py (RegisterBroker, UnregisterBroker), labels.py (AlterLabels),
        create_topics.py (CreateTopics), delete_topics.py (DeleteTopics), create_partitions.py
        (CreatePartitions), alter_configs.py (AlterConfigs), producer_ids.py (AllocateProducerIds),
        internal_topics.py (EnsureInternalTopic), reassignments.py (AlterReassignments), balance.py
        (BalanceReplicas), voters.py (RequestVoters, ReportVoters), grants.py
        (BeginGrant, AppointLeader), declared_losses.py (DeclareLost),
        recovered_partitions.py (RecoverPartition), broker_last_seen.py
        (NoteLastSeen),
        outages.py (RuleDomain, NoteOutages), rejoined.py (NoteRejoined), buckets.py
        (IdentifyBucket), rules.py (CreateRules, DeleteRules),
        secrets.py (AlterSecrets), quotas.py (AlterQuotas).
Source: STYLE, rule 7."""

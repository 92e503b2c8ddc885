"""Kafka's broker keys that are no settings of a cluster here: described, and some of them stored.

Map:    rows.py         how a row is written
        from_file.py    keys whose value comes from the broker's file
        threads.py      threads, buffers and timers of Kafka's own
        logs.py         logs and their cleaner
        replication.py  copies, elections, the controller's quorum
        groups.py       groups of the consumer and streams protocols
        share_groups.py share groups
        transactions.py transactions, delegation tokens
        security.py     TLS, SASL, authorization
        tiering.py      tiered storage
        table.py        all of them, by name
        other_resources.py  keys of groups and of client metrics, which are no broker keys
Source: Kafka 4.3's broker configuration; decision 0045."""

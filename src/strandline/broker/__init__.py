"""One broker: takes Kafka requests, answers them from replicas and from the control plane.

Map:    handlers/         One file for each Kafka API.
        read_replicas/    Topics that are read out of another cluster's bucket.
        tier_exports/     Exports of the tiers that this broker leads.
        authentication/   Logins of clients, and their tokens.
        access/           Rights of clients, and what their requests change.
        quotas/           How much of this broker each client may use.
        server/           Client connections: frames in, ordered answers out.
        fetch/            Consumers' reads.
        produce/          Producers' writes.
        groups/           Which Raft groups live on this broker, and changes of their members.
        leadership/       Where leaders should be, and moving them there.
        operations/       What a broker does for the cluster beside serving requests.
        tiering/          Tiered storage: uploads, retention in the buckets, deletion.
        coordinators/     The state machines of the control plane, hosted on this broker.
        snapshots/        Snapshots of the controller's state: taken, kept, sent.
        partitions.py     finds the replica of a partition, or the error
        config_changes.py has the controller change configuration
        broker.py         Broker: one process, from start to stop
        composition.py    the parts that handlers and loops share
        context.py        one request, and what handlers work with
        features.py       the features of a cluster, and their levels
        apis_page.py      the reference page of the APIs
        not_offered.py    APIs of Kafka that are not there, and why
        handler_kinds.py  handlers with a task each, and without
        handler_table.py  which handler serves which API
Source: Design sections 3 to 5.
"""

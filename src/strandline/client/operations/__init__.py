"""One file for each subject that operators ask about.

Map:    no_controller.py   why no controller is found
        configs.py         configuration keys
        broker_configs.py  configuration keys of one broker
        reassignments.py   replicas that move
        balance.py         the balancer's moves
        broker_removal.py  brokers that are drained or decommissioned
        leadership.py      which broker leads what
        topology.py        labels and round trips of brokers
        labels.py          changes of labels
        cluster_status.py  what every broker knows of the cluster's health
        lost_logs.py       partitions that no election helps: their logs are lost
        group_list.py      consumer groups, and whose are missing
        zones.py           zones that are down
        zone_rows.py       the same, in words
        moments.py         times and durations, in words
        log_dirs.py        disks of brokers
        in_sync.py         in-sync replicas
        observers.py       observers of partitions
        replica_status.py  how far each replica is
        survivors.py       what is left of partitions without a leader
        losses.py          declared losses
        recovery.py        partitions out of buckets
        tier.py            what buckets hold
        buckets.py         which bucket a name stands for
        users.py           users and their passwords
        rules.py           rules of access
        quotas.py          quotas of clients
        writers.py         which clients produce most
        isolation.py       brokers cut off by a drill
        read_replicas.py   copies of other clusters' topics
        doctor.py      what a cluster tells of its security
        exports.py         what buckets have of partitions
"""

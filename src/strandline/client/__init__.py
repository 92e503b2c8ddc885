"""A small Kafka client of our own, for the command line and for pipelines: blocking, few imports.

Map:    transport.py (the seam: sockets and time), connection.py (one broker: versions, requests and
        answers in order), cluster.py (Client: which broker to ask, retries, a deadline),
        no_controller.py (why it finds no controller), admin.py (topics, groups, offsets),
        configs.py (keys of what there is), reassignments.py (replicas that move), balance.py (those
        that move by themselves), lives.py (brokers that are to leave), leadership.py (what they
        lead instead of others), topology.py (labels and round trips of the brokers), labels.py
        (labels that are changed), zones.py (what is down), zone_rows.py (the same in words),
        log_dirs.py (their disks), in_sync.py (replicas in sync, by their leaders), observers.py
        (replicas without a vote), replica_status.py (how far each is, by their leaders),
        side_by_side.py (many brokers are asked at the same time), survivors.py (what is left where
        nobody leads), losses.py (what is given up then), writers.py (who produces most, by them),
        isolation.py (brokers that are cut off for a drill), partitioner.py (key -> partition, as
        Kafka does), producer.py, consumer.py, group_member.py (a consumer group of one), errors.py.
Why:    blocking, because the command line does one thing at a time and must start at once; brokers
        that answer side by side are still asked side by side.
Source: design section 3."""

"""One broker: takes Kafka requests, answers them from replicas and from the control plane.

Map, from the outside in:
        broker.py (Broker: the composition of one process), hosting.py (which groups live here),
        damaged_logs.py (those that could not be opened), controller_log.py (the same for the
        controller's), moving.py (replicas that move, at the leader) with held_up.py (grants that
        cannot begin), floors.py (write quorums that are promised), acting.py (who votes while some
        are lost), giving_way.py (others lead where the controller is not reached), arbitrating.py
        (who leads where no majority is left),
        rejoining.py (who takes part again after a loss), labelling.py (this broker's own labels),
        introduction.py and leaving.py (its first and last words to the others),
        upkeep.py (what it does now and then), failback.py (gives leadership back to where it is
        preferred), following.py (gives it to where writers are) with writers.py (who produces how
        much), draining.py (gives it away in maintenance), leader_ranks.py (how much policies prefer
        each broker), electing.py (when somebody asks), balancing.py (has replicas moved to where
        policies want them), silences.py (for how long brokers are silent), outages.py (which
        zones are down), copy_budget.py (how fast all copies together may be), isolation.py (cut
        off for a drill),
        server.py (listens, bounds, sweeps), connection.py (one client: frames in, ordered answers
        out) with inbox.py, outbox.py, parts.py and limits.py, router.py (frame -> handler ->
        answer), context.py (one request in hand, and what handlers work with), handler_table.py
        (which handler serves which API), handlers/ (one file an API), asked.py (how many things a
        request names), fetching.py (one fetch), reading_near.py (which replica
        is near a consumer), partitions.py (finds replicas, or the error),
        purgatory.py (what waits), awaiting.py (until a decision is the case here), reporting.py
        (what the controller asks every broker), ticker.py (what is done again and again),
        errand.py (one piece of work at a time), producer_ids.py, topic_configs.py,
        crowd.py (commands of many groups, together),
        controller_host.py and
        coordinator_host.py (the pure machines of the control plane, hosted), coordinator_shard.py
        (one partition of `__consumer_offsets` led here), timer_table.py (its timers).
Source: design sections 3 to 5."""

"""The state machines of the control plane, hosted on this broker.

Map:    controller_host.py    the controller
        coordinator_host.py   consumer group coordinators
        coordinator_shard.py  one partition of `__consumer_offsets` led here
        timer_table.py        timers of a coordinator
        quorum_status.py      how far the replicas of the controller are
        applied_waiters.py    waits until a decision is applied here
        command_batch.py      commands of many groups, sent together
        producer_ids.py       blocks of producer ids
        topic_configs.py      configuration of topics in force
"""

"""Which Raft groups live on this broker, and changes of their members.

Map:    hosting.py                 opens and closes groups as the controller's log says
        group_settings.py          the log and Raft configuration that a topic asks for
        log_opener.py              opens logs, and remembers those that cannot be opened
        damaged_logs.py            damaged logs: cut and copied again
        peers.py                   which brokers there are, for replication
        controller_log.py          the same for the controller's own log
        controller_votes.py        which brokers vote in the controller's group
        moving.py                  changes of members, at the leader
        blocked_grants.py          grants that cannot start, retried with back-off
        promised_write_quorums.py  write quorums that voters have promised to keep
        wanted_voters.py           which voters a group led here should have now
        voter_reconciliation.py    removes silent voters and adds them again
        leader_step_down.py        leaders that cannot reach the controller step down
        arbitration.py             collects members and asks for a grant when no majority is left
        rejoining.py               readmits replicas that lost their disk
"""

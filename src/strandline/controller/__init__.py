"""Decides about the whole cluster: brokers, topics, partitions, configuration, producer ids. Pure.

Map:    decide/       One file for each command family.
        balancer/     Which replica moves next, and why.
        outages/      Which zones are down, and whose repair is held.
        placing/      Which brokers partitions get, and whether policies can be met.
        snapshots/    The state as one file.
        arbitration/  Groups that have lost voters.
        machine.py    which file decides which command
        decision.py   inputs and results of decisions
        state.py      the committed state, rebuilt from records
        access.py     records that change what principals may do, and their replay
        displaced.py  where partitions were before a decommission
        records.py    the records of the controller's log
        commands.py   commands and their answers
        loss_commands.py  the commands that give up logs of partitions
        outage_commands.py  the commands about silent brokers and domains that are down
        bucket_commands.py  the command that records a bucket's identity
        rule_commands.py  the commands about rules of access
        user_commands.py  the command about passwords
        quota_commands.py  the command about quotas
        reports.py    the brokers' reports about themselves
        names.py      legal topic names
        listing.py    the first few names of a long list
How:    command + committed state -> records to append + the answer, given once they are committed.
        Nothing here changes state but `ControllerState.replay`.
Source: Design sections 3 and 7.
"""

"""What commands print: plans, explanations, warnings.

Map:    live_cluster.py     a running cluster as the solver sees it
        restarts.py         which brokers may be restarted
        stops.py            what a stop of brokers would do
        moves.py            what another policy would move
        leaving.py          what a decommission would move
        one_move.py         what the move of one partition would break
        piles.py            preferred leaders that pile up
        would_be.py         topics as they would be
        explaining.py       explanations of placements
        losses.py           what can act after a loss
        loss_confirmation.py  the question before a loss is declared
        status_page.py      what is down, stopped, at risk, and what to type
        declared_losses.py  what was declared lost
        leaderless.py       what to type when a partition has no leader
        policy_notes.py     warnings about an accepted policy
        restore.py          what buckets have of a lost cluster
        tiered.py           what buckets hold, and what is wrong with it
        bucket_sums.py      what each bucket holds and was asked
        replaced_bucket.py  another bucket in the place of one
        writers.py          where the writers are
        copy_rates.py       the rate of copies
        read_replicas.py    how far copies of other clusters are
        bucket_ends.py      what buckets have of records at risk
"""

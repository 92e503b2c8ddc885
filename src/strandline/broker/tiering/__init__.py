"""Tiered storage on one broker: uploads, retention in the buckets, deletion.

Map:    tiering.py         one per broker: looks after all partitions, answers uploads
        led_tier.py        the leader's work on one partition
        history.py         how a partition begins with what buckets have of it
        attempt.py         the leader's side of one upload
        backlog.py         what the disk keeps for buckets, and its limit
        rewrites.py        the leader's work on live objects: merged, or compacted
        uploads.py         the uploader
        rewriting.py       objects that are read to be written again as one
        sources.py         where an upload's records come from
        messages.py        what leader and uploader say to each other
        deleting.py        which objects may be deleted
        deleted_topics.py  deletes what buckets hold of deleted topics
        claims.py          which buckets are this cluster's, and those of their names
        repairs.py         puts objects again that a bucket has lost or damaged
        repair_context.py  what repairs ask of their broker
        topic_plans.py     what topics want of the buckets
        tier_context.py    what the leader's work asks of its broker
        memory_budget.py   what uploads hold in memory
        figures.py         what is counted
Source: decisions 0059 and 0066."""

"""What is observed, and what must hold.

Map:    facts.py                what was observed
        checker.py              hands each fact to the invariants
        invariants.py           what must always hold
        controller_states.py    states of the controller that snapshots stand for
        committed_offsets.py    offsets that consumer groups are told
        deleted_records.py      records that DeleteRecords removed
        removals.py             replicas that delete their data
        successors.py           which replica continues without a majority
        promotions.py           observers promoted to voters
        role_changes.py         how often roles change
        declared_losses.py      what a declared loss may lose
        outages.py              repair is held while a zone is down
        audit.py                whole logs, read and compared
        leader_acknowledged.py  records acknowledged with acks=1
        compacted.py            what compaction may remove
        crossings.py            bytes that cross between regions
        entries_sent.py         entries sent to each broker
        placements.py           policies that placements keep
        tiered.py               records that leave for buckets
        bucket_facts.py         what was observed of buckets
        bucket_promises.py      exports, deletions in buckets, copies in another cluster
        shortened_logs.py       logs that retention has shortened
        tiers.py                what buckets hold, as replicas know
        superseding.py          which record supersedes which
        verdicts.py             what must happen once the faults are over
        repairs.py              rotten data is mended
        endings.py              outcomes that a scenario expects
"""

"""The second world behind the five seams: a cluster in one process and in virtual time.

Map:    runs       __main__.py (the command), swarm.py (many seeds), scenario.py (what a seed stands
                   for), variations.py (what varies it), families.py (what a seed stands
                   for in each family), outage_swarm.py, brief_swarm.py (the second and the third),
                   scenario_file.py (what people write), made of scenario_rows.py (its
                   tables), shrink.py (fewer faults), world.py (one run, from start to
                   verdict), bootstrap.py (how whole brokers become a cluster), trace.py (all
                   its lines), story.py (of a violation)
        time       scheduler.py (the one queue of events), process.py (one life of a host),
                   clock.py, loop.py (asyncio in virtual time)
        hosts      host.py (a machine: what lasts, and one process after the other), member.py (the
                   program under test on it: the groups alone), broker_member.py (a whole broker),
                   disk.py, made of file_image.py (bytes) and directory_tree.py (names), network.py,
                   made of link.py (one direction)
        load       clients.py (the way to the brokers and back), made of
                   connections.py (each of which may be lost one way), lookups.py
                   (who leads, which id, how far), producers.py, consumers.py, near_readers.py (that
                   go where a leader sends them), group_consumers.py, table_readers.py,
                   values.py (the records they know again); admins.py: deleters.py
                   (DeleteRecords), movers.py (replicas that move); operators.py (policies and
                   labels that change); loss_declarers.py (what is gone for good); topics.py (what
                   stands for a group)
        faults     faults.py (one function for each kind), domain_faults.py (of zones, regions and
                   observers), client_faults.py (between clients and brokers), ambushes.py (that
                   wait for arbitration), lasting_losses.py (what does not come back),
                   strikes.py (what kinds share), damage.py (bad disks),
                   disturbances.py (what is amiss now)
        verdict    facts.py (what was observed), checker.py (hands it on), invariants.py (what must
                   hold), committed_offsets.py (what a consumer group is told),
                   deleted_records.py (what DeleteRecords took), removals.py (who lets go of its
                   data), successors.py (who goes on without a majority),
                   promotions.py (observers that stand in), role_changes.py (how often),
                   declared_losses.py (what may be gone), tally.py (what a run amounted to),
                   placements.py (that
                   policies hold), outages.py (that repair is held),
                   wiretap.py, entries_sent.py and crossings.py (what goes over the network),
                   audit.py (whole logs, read), leader_acknowledged.py (acks=1),
                   compacted.py and superseding.py (what compaction may take),
                   shortened_logs.py (what retention may),
                   verdicts.py (what is awaited once the faults are over), soundness.py (that
                   what rots is mended), endings.py (what must have come of it)
Source: design section 10."""

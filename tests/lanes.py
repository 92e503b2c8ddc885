"""Which tests run in the fast lane (`make test`), and which in the long one (`make test-long`).

Why:    everything a change can break is tested once within minutes. Many seeds of one course, and
        every combination of a client with a fault, find what is rare: they have a lane of their
        own, of which each submission runs a share.
How:    a test is long if it is marked so (`@pytest.mark.long`), if a row of LONG names it, or if
        its seed is not among the first ones of its course. The rows are one table so that the whole
        division is seen at once; a test checks that each row names a test.
Source: HACKING, "Tests"; docs/internals/test-times.md."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

SEED = "seed"
SEEDS_FAST = {"tests/simulation/": 1, "tests/raft/": 2}
"""So many seeds of each course are in the fast lane, where one costs a second: {room: seeds}."""


@dataclass(frozen=True, slots=True)
class Row:
    """Tests whose name begins with `prefix`: all but the first `fast` of each function are long."""

    prefix: str
    fast: int
    why: str


REAL, BESIDE = "tests/integration/", "over the simulated network tests/broker/"
SIM, SOUND = "tests/simulation/", "the same course with the mistake is in the other test"
FEW = "some of its cases are fast"
AUDITS = "tests/pipeline/audit, over logs in memory; a fork on a real cluster is fast"
RARE = "`make test` draws new seeds of the brief swarm; each submission draws some of outages"
LONG: tuple[Row, ...] = (
    Row(
        "tests/clients/test_access.py::test_each_client_where",
        0,
        "half an hour; tests/integration logs in by each way",
    ),
    Row(
        "tests/clients/test_kafka_tools.py",
        0,
        "a dozen processes of Java; the calls are Kafka's own",
    ),
    Row(
        "tests/clients/test_kafka_tools_and_rules.py",
        0,
        "forty processes of Java; tests/differential has the answers to the same calls",
    ),
    Row("tests/broker/test_read_replicas_by_seed.py", 0, "tests/broker/test_tier_exports.py"),
    Row("tests/broker/test_full_backlogs.py::test_alarms_say", 0, "test_voting.py has each alarm"),
    Row("tests/broker/test_recovered_partitions_by_seed.py", 2, "two seeds are fast"),
    Row(
        "tests/differential/test_access_tables.py::test_all_clients",
        0,
        "seconds each; test_some_clients has the clients that matter most",
    ),
    Row(f"{REAL}test_partitions_out_of_buckets.py", 0, f"a minute; {BESIDE}"),
    Row(f"{REAL}test_token_logins.py::test_a_new_key", 0, "tests/broker/test_token_logins.py"),
    Row(f"{REAL}test_token_logins.py::test_a_session", 0, "3 tokens of 3 s; the others are fast"),
    Row(f"{REAL}test_token_logins.py::test_rules_of", 0, "tokens of 3 s; broker/test_access"),
    Row(f"{REAL}test_token_logins.py::test_a_token", 0, "tests/security/sasl/test_oauth_bearer"),
    Row(f"{REAL}test_token_logins.py::test_a_command_gets", 0, "tokens of 2 s; a file is fast"),
    Row(f"{REAL}test_reauthentication.py", 0, "tests/broker/test_reauthentication.py"),
    Row(f"{REAL}test_cores.py::test_a_machine", 0, "half a minute; a machine's processes are fast"),
    Row(f"{REAL}test_cores.py::test_more_cores", 0, "half a minute; cli/test_machine_directory"),
    Row(f"{REAL}test_cores.py::test_ids_of", 0, "test_lost_disk.py has the refusal"),
    Row(f"{REAL}test_quotas.py", 0, "12 s and more of traffic; tests/broker/test_quotas.py"),
    Row(f"{REAL}test_no_secrets.py", 0, "half a minute; tests/security, tests/cli have the parts"),
    Row(f"{REAL}test_memory_attack.py", 0, "a minute; tests/broker/test_connection_bounds.py"),
    Row(f"{REAL}test_restore.py", 0, "half a minute; tests/client/restore has each part"),
    Row(f"{REAL}test_pipeline_rights.py::test_an_audit", 0, "ten commands; a lake's is fast"),
    Row(f"{REAL}test_broker_tls.py::test_a_cluster", 0, "a minute; tests/network/test_peer_tls"),
    Row("tests/broker/test_compacted_tiers.py::test_leaders_that_lose", 1, FEW),
    Row("tests/broker/test_compacted_tiers.py::test_a_store_that_fails", 2, FEW),
    Row(f"{REAL}test_tiered_compaction.py", 0, f"half a minute; {BESIDE}"),
    Row(f"{REAL}test_tiered_uploads.py::test_uploads_outlive", 0, f"half a minute; {BESIDE}"),
    Row("tests/fuzz/test_hostile.py::test_a_real", 0, "half a minute; `make fuzz` has the rest"),
    Row("tests/chaos/test_run.py", 0, "a minute of real faults; tests/integration has each kind"),
    Row(
        "tests/broker/test_balancing.py::test_a_broker_that_returns_while",
        2,
        "6 stages; 2 are fast",
    ),
    Row("tests/broker/test_balancing.py::test_a_controller_that_dies_at_any", 2, FEW),
    Row("tests/broker/test_balancing.py::test_a_new_broker_that_dies_while", 2, FEW),
    Row("tests/broker/test_balancing.py::test_a_policy_that_is_changed_at", 2, FEW),
    Row("tests/broker/test_broker_last_seen.py::test_a_clock_that_jumps", 1, FEW),
    Row("tests/broker/test_broker_last_seen.py::test_a_lost_broker_is_replaced_though", 1, FEW),
    Row(
        "tests/broker/test_cuts_between_voters.py::test_a_link_that_comes",
        0,
        "tests/controller, arbitration by events",
    ),
    Row("tests/broker/test_cuts_between_voters.py::test_the_side_of", 1, FEW),
    Row("tests/broker/test_declared_losses.py::test_who_was_declared", 3, FEW),
    Row(
        "tests/broker/test_disk_relief.py::test_what_goes_is_told", 0, "the other reliefs are fast"
    ),
    Row(
        "tests/broker/test_failback.py::test_a_replica_that_cannot",
        0,
        "one goes back in the other tests",
    ),
    Row(
        "tests/broker/test_following.py::test_producers_that_take",
        0,
        "tests/controller, following by events",
    ),
    Row("tests/broker/test_mending_goes_on.py::test_a_batch_that_is_lost", 1, FEW),
    Row("tests/broker/test_moving_replicas.py::test_replicas_move_while", 6, FEW),
    Row("tests/broker/test_one_way_cuts.py", 1, FEW),
    Row(
        "tests/broker/test_outages.py::test_no_controller_takes",
        0,
        "tests/controller/outages/test_judging.py",
    ),
    Row("tests/broker/test_outages.py::test_partitions_wait", 1, FEW),
    Row("tests/broker/test_outages.py::test_what_is_released", 1, FEW),
    Row(
        "tests/broker/test_outages.py::test_who_is_still_missing",
        0,
        "tests/controller/outages/test_judging.py",
    ),
    Row("tests/broker/test_promised_write_quorums.py::test_a_promise_that", 1, FEW),
    Row("tests/broker/test_promotion.py::test_a_loss_among", 1, FEW),
    Row("tests/broker/test_promotion.py::test_an_observer_that_dies", 1, FEW),
    Row("tests/broker/test_promotion.py::test_the_tutorial_s", 1, FEW),
    Row("tests/broker/test_appointed_observers.py::test_the_observer_that_was", 1, FEW),
    Row("tests/broker/test_appointed_observers.py::test_voters_that_were", 2, FEW),
    Row("tests/broker/test_stale_log_resets.py::test_whatever_its_power", 3, FEW),
    Row("tests/broker/test_cuts_between_voters.py::test_where_one_way", 1, "one of four is fast"),
    Row(
        f"{REAL}test_tiered_reading.py::test_a_consumer_of_old",
        0,
        "a power failure is in tests/broker/test_remote_reads_in_a_cluster.py",
    ),
    Row(f"{REAL}test_tiered_reading.py::test_consumers_wait", 1, "one of three clients is fast"),
    Row("tests/broker/test_declared_losses_by_seed.py", 1, "one seed is fast"),
    Row("tests/broker/test_failback.py::test_a_few_go_back", 0, "one goes back in the other tests"),
    Row("tests/broker/test_moving_replicas.py::test_who_dies_at_any", 8, "24 stages; 8 are fast"),
    Row("tests/broker/test_observers.py::test_an_observer_is_replaced", 6, "20 stages; 6 are fast"),
    Row("tests/broker/test_promised_write_quorums.py::test_a_link_that_flaps", 0, RARE),
    Row("tests/controller/balancer/test_preview.py::test_the_order", 20, "100 orders; 20 are fast"),
    Row(
        "tests/controller/balancer/test_random_histories.py::test_disks_were",
        0,
        "what the histories of its neighbours reach",
    ),
    Row("tests/controller/balancer/test_random_histories.py", 8, "40 histories; 8 are fast"),
    Row(
        "tests/pipeline/plan/test_runs.py::test_two_processes",
        0,
        "parts in any order in one process are fast",
    ),
    Row(
        "tests/raft/test_explorer.py::test_every_schedule",
        1,
        "small scopes; `make explore` has all",
    ),
    Row("tests/raft/test_explorer.py::test_random_walks_beyond", 0, "small scopes are fast"),
    Row("tests/raft/test_explorer.py::test_states_that_differ", 1, "one of three scopes is fast"),
    Row("tests/raft/test_explorer_declaring.py::test_every_schedule", 2, FEW),
    Row("tests/raft/test_explorer_declaring.py::test_states_that", 1, "one of three is fast"),
    Row("tests/raft/test_schedules.py::test_all_invariants", 5, "5 of 20 blocks are fast"),
    Row("tests/raft/test_explorer.py::test_a_broken_rule", 3, "three of eighteen rules are fast"),
    Row(f"{REAL}test_balancing.py", 0, BESIDE + "test_balancing.py"),
    Row(
        f"{REAL}test_broker_life.py",
        0,
        BESIDE + "test_maintenance.py, tests/broker/test_disk_room.py",
    ),
    Row(f"{REAL}test_tiered_page.py", 0, "tests/cli/test_tiered_commands.py has each command"),
    Row(f"{REAL}test_declared_losses.py", 0, BESIDE + "test_declared_losses.py"),
    Row(f"{REAL}test_disk_relief.py", 0, BESIDE + "test_disk_relief.py"),
    Row(f"{REAL}test_drill.py::test_the_cut_ends_by_itself", 0, "tests/broker/test_isolation.py"),
    Row(f"{REAL}test_drill.py::test_another_terminal", 0, "tests/cli/test_drill_stops.py"),
    Row(f"{REAL}test_drill.py::test_a_planted_loss", 0, "tests/cli/test_drill.py"),
    Row(f"{REAL}test_drill.py::test_what_is_foretold", 0, "tests/cli/test_drill.py"),
    Row(
        f"{REAL}test_explain.py::test_an_outage_is_explained", 0, "tests/placement/test_outcomes.py"
    ),
    Row(f"{REAL}test_fewer_voters.py", 0, BESIDE + "test_voter_reconciliation.py"),
    Row(f"{REAL}test_following.py", 0, BESIDE + "test_following.py"),
    Row(
        f"{REAL}test_first_outage.py::test_the_whole_walk",
        0,
        "minutes of outages; the steps that wait for nothing are fast",
    ),
    Row(f"{REAL}test_full_disk.py", 1, "both kinds of reserved space; one is fast"),
    Row(f"{REAL}test_held_producers.py::test_a_leader", 0, "the socket is held in the other test"),
    Row(f"{REAL}test_labelling.py", 0, BESIDE + "test_labelling.py"),
    Row(
        f"{REAL}test_metrics.py::test_brokers_are_scraped_while",
        0,
        "tests/admin/test_exposition.py",
    ),
    Row(
        f"{REAL}test_moving_replicas.py::test_copies_are_throttled",
        0,
        BESIDE + "test_copy_budget.py",
    ),
    Row(
        f"{REAL}test_outages.py",
        0,
        "test_promotion.py kills a region; " + BESIDE + "test_outages.py",
    ),
    Row(f"{REAL}test_policy_preview.py", 0, "tests/placement/test_outcomes.py"),
    Row(f"{REAL}test_promotion.py::test_the_tutorial", 0, "test_a_data_centre_is_killed is fast"),
    Row(f"{REAL}test_reading_near.py", 1, "every client; librdkafka is fast"),
    Row(f"{REAL}test_read_replicas.py", 0, BESIDE + "test_read_replicas.py"),
    Row(f"{REAL}test_read_replicas_page.py", 0, BESIDE + "test_read_replicas.py"),
    Row(
        f"{REAL}test_replaced_brokers.py", 0, "tests/cli/test_dev_membership.py; a minute of moves"
    ),
    Row(f"{REAL}test_tiered_bad_days.py", 0, "half a minute; test_tiered_uploads.py is fast"),
    Row(f"{REAL}test_swapped_buckets.py", 0, "a minute; tests/broker/test_bucket_identities.py"),
    Row(f"{REAL}test_unregistering.py", 0, BESIDE + "test_unregistering.py"),
    Row(f"{REAL}test_zones.py", 0, BESIDE + "test_outages.py"),
    Row(f"{SIM}test_failover.py::test_every_group", 2, "six kills; two are fast"),
    Row(f"{SIM}test_fault_kinds.py::test_whatever_takes", 0, RARE),
    Row(f"{SIM}test_leaving_voters.py::test_a_planted_mistake", 0, "tests/raft/test_explorer.py"),
    Row(f"{SIM}test_leaving_voters.py::test_voters_leave", 0, RARE),
    Row(f"{SIM}test_moves.py::test_who_asks", 0, BESIDE + "test_moving_replicas.py"),
    Row(f"{SIM}test_balancing.py::test_a_planted_mistake", 1, "one of each kind is fast"),
    Row(
        f"{SIM}test_balancing.py::test_a_broker_that_flaps", 0, BESIDE + "test_broker_last_seen.py"
    ),
    Row(f"{SIM}test_balancing.py::test_of_a_region_that_is_down", 0, BESIDE + "test_outages.py"),
    Row(f"{SIM}test_balancing.py::test_what_has_to_be_in", 0, BESIDE + "test_outages.py"),
    Row(f"{SIM}test_balancing.py::test_brokers_are_", 0, BESIDE + "test_maintenance.py"),
    Row(
        f"{SIM}test_balancing.py::test_bytes_that_are_copied", 0, "the invariant without a mistake"
    ),
    Row(f"{SIM}test_balancing.py::test_full_disks", 0, BESIDE + "test_disk_relief.py"),
    Row(
        f"{SIM}test_balancing.py::test_in_half_an_hour",
        0,
        "tests/controller/outages/test_judging.py",
    ),
    Row(f"{SIM}test_balancing.py::test_moves_for_a_broker", 0, "the invariant without a mistake"),
    Row(
        f"{SIM}test_balancing.py::test_under_load_on", 0, "tests/controller/outages/test_judging.py"
    ),
    Row(f"{SIM}test_compaction.py::test_a_planted_mistake", 0, "the invariant without a mistake"),
    Row(f"{SIM}test_cut_cables.py", 0, BESIDE + "test_cuts_between_voters.py"),
    Row(f"{SIM}test_drills.py::test_a_drill_that", 0, "tests/cli/test_drill.py"),
    Row(f"{SIM}test_drawn_damage.py::test_a_planted_mistake", 0, "its invariants have tests"),
    Row(f"{SIM}test_each_invariant.py::test_without_the_mistake", 0, SOUND),
    Row(f"{SIM}test_lost_answers.py::test_no_producer", 0, RARE),
    Row(
        f"{SIM}test_lost_answers.py::test_whatever_is_not",
        1,
        "every kind of answer; one is fast",
    ),
    Row(f"{SIM}test_lost_answers.py::test_where_answers", 0, "the swarm's draws, counted"),
    Row(f"{SIM}test_observers.py::test_writes_go_on_as", 1, "three fates; one is fast"),
    Row(f"{SIM}test_observers.py::test_topics_with_observers", 0, RARE),
    Row(f"{SIM}test_outage_swarm.py::test_a_planted_mistake", 2, "two of seventeen are fast"),
    Row(f"{SIM}test_outage_swarm.py::test_a_small_block", 0, RARE),
    Row(f"{SIM}test_outage_swarm.py::test_without_the_mistake", 0, SOUND),
    Row(f"{SIM}test_promised_write_quorums.py::test_a_planted_mistake", 0, "tests/raft finds it"),
    Row(f"{SIM}test_promotion.py::test_grants_that_wait", 0, RARE),
    Row(f"{SIM}test_promotion.py::test_observers_stand_in_and_leave", 0, RARE),
    Row(f"{SIM}test_promotion.py::test_observers_stand_in_for", 0, f"{REAL}test_promotion.py"),
    Row(f"{SIM}test_replication_path.py::test_one_follower", 1, "three cases; one is fast"),
    Row(f"{SIM}test_scenario_files.py::test_the_scenarios", 4, "21 scenarios; four are fast"),
    Row(f"{SIM}test_tombstones.py::test_keys_stay_deleted_where", 0, "its neighbour is fast"),
    Row(f"{SIM}test_balancing.py::test_replicas_move_by", 0, BESIDE + "test_balancing.py"),
    Row(f"{SIM}test_balancing.py::test_what_goes_on_with", 0, BESIDE + "test_balancing.py"),
    Row(f"{SIM}test_promotion.py::test_writes_go_on_within", 0, f"{REAL}test_promotion.py"),
    Row(f"{SIM}test_relays.py::test_a_relay_that_fails", 2, FEW),
    Row(f"{SIM}test_replication_path.py::test_a_follower_that_falls", 2, FEW),
    Row(
        f"{SIM}test_returning_region.py::test_nothing_overtakes",
        0,
        "the same region in the tests beside it",
    ),
    Row(f"{SIM}test_returning_region.py::test_what_it_missed", 2, FEW),
    Row(f"{SIM}test_returning_region_compacted.py::test_what_a_region", 1, FEW),
    Row(f"{SIM}test_write_caching.py::test_nothing_is_lost", 0, RARE),
    Row(f"{SIM}test_entries_sent.py::test_a_leader_that", 0, RARE),
    Row(
        f"{SIM}test_deletions.py::test_deleted_records",
        0,
        "tests/integration/test_delete_records.py",
    ),
    Row(f"{SIM}test_repeated_batches.py::test_a_leader_that", 0, "tests/storage, by log"),
    Row(
        f"{SIM}test_failed_flushes.py::test_where_the_cache", 0, "a measure; the invariant is fast"
    ),
    Row(f"{SIM}test_each_invariant.py::test_a_promise_notices", 6, FEW),
    Row(f"{SIM}test_promotion.py::test_an_observer_stands_in", 0, f"{REAL}test_promotion.py"),
    Row(f"{SIM}test_balancing.py::test_of_a_zone_that_is_down", 0, BESIDE + "test_outages.py"),
    Row(f"{REAL}test_observers.py::test_an_observer_is_read", 0, "test_promotion.py"),
    Row(
        f"{REAL}test_store_cluster.py", 0, "half a minute each; tests/tiered/objects has each fault"
    ),
    Row(f"{REAL}test_audit_buckets.py", 0, "tests/pipeline/audit/buckets has each fault"),
    Row(f"{REAL}test_audit.py::test_a_broker_that", 0, AUDITS),
    Row(f"{REAL}test_audit.py::test_a_dropped", 0, AUDITS),
    Row(f"{REAL}test_audit.py::test_a_flipped", 0, AUDITS),
    Row(f"{REAL}test_audit.py::test_a_leader_that", 0, AUDITS),
    Row(f"{REAL}test_audit.py::test_replicas_that", 0, AUDITS),
    Row(f"{REAL}test_audit.py::test_the_command", 0, AUDITS),
    Row(f"{REAL}test_audit.py::test_two_replicas", 0, AUDITS),
    Row(
        "tests/broker/test_voter_reconciliation.py::test_the_controller_tells",
        0,
        BESIDE + "test_low_quorum.py",
    ),
    Row(f"{SIM}test_balancing.py::test_what_is_placed", 0, BESIDE + "test_outages.py"),
    Row(f"{SIM}test_relay_swarm.py", 0, "tests/simulation/test_relays.py has each fault once"),
    Row(f"{SIM}test_returning_region.py::test_where_nobody_relays", 0, "the measure itself"),
    Row(f"{SIM}test_swarm.py::test_a_planted_mistake", 4, "four of 31 are fast"),
    Row(f"{SIM}test_swarm.py::test_without_the_mistake", 0, SOUND),
    Row(f"{SIM}test_brief_swarm.py::test_a_small_block", 0, RARE),
    Row(f"{SIM}test_transfers.py::test_who_dies_during", 12, "94 moments; 12 are fast"),
    Row(f"{SIM}test_variations.py::test_every_promise", 1, "every variation; one is fast"),
    Row(
        "tests/spark/reading/test_bucket_fetching.py::test_executors_open",
        0,
        "tests/tiered/objects opens the same stores",
    ),
    Row("tests/spark/test_backfill.py", 0, "test_buckets reads the same way, kills are 0050's"),
    Row("tests/spark/test_buckets.py", 0, "over stores in memory tests/spark/reading is fast"),
    Row("tests/spark/test_data_sets.py", 0, "fruit is a data set, and fast"),
    Row("tests/spark/test_kept_tables.py", 0, "the same steps in one process are fast"),
    Row("tests/spark/test_upkeep.py::test_a_round_within", 0, "the round itself is fast"),
    Row("tests/spark/test_pages.py::test_a_command", 0, "each command also has tests of its own"),
    Row("tests/spark/test_pages.py::test_commands", 0, "each command also has tests of its own"),
    Row("tests/spark/test_pages.py::test_every", 0, "each command also has tests of its own"),
    Row("tests/spark/test_secured.py", 0, "a stream and a certificate take the way of the batches"),
    Row("tests/spark/test_secured.py::test_batches_are_read_and_written_by_a", 1, "the batches"),
    Row("tests/spark/test_secured_audit.py", 0, "each half alone is fast: rules, and buckets"),
    Row(
        "tests/spark/test_renewed_certificates.py",
        0,
        "a minute each; tests/client and tests/broker read changed files",
    ),
    Row("tests/spark/test_secure.py", 0, "tests/spark/test_secured.py reads the same way"),
    Row("tests/spark/test_registry.py", 0, "tests/pipeline/values decodes by a real registry"),
    Row("tests/spark/test_replays.py", 0, "a minute each; dead letters of a lake are fast"),
    Row("tests/spark/test_lake.py", 1, "one kill is fast; the rest of a lake's life is long"),
    Row("tests/spark/test_lake_deaths.py", 0, "one kill of a lake is fast; a minute each"),
    Row("tests/spark/test_direct_files.py::test_rows_types", 1, FEW),
    Row("tests/spark/test_direct_files.py::test_what_a_table", 0, "its transaction is plain Delta"),
    Row("tests/spark/test_lake_tables.py::test_a_schema", 0, "tests/pipeline/lake has each change"),
    Row("tests/spark/test_lake_tables.py::test_a_topic_that_was_made_anew_goes", 0, FEW),
    Row("tests/spark/test_lake_tables.py::test_a_table_whose", 0, "tests/pipeline/lake recovers"),
    Row("tests/spark/test_lake_tables.py", 2, "most of a job is tested in tests/pipeline/lake"),
    Row("tests/spark/test_dead_letters.py", 0, "tests/pipeline/lake has dead letters and kills"),
    Row("tests/spark/test_reading_near.py", 0, "the lake job reads the same way"),
    Row("tests/spark/test_audit.py::test_the_audit_runs", 0, "the lake job is submitted, too"),
    Row("tests/spark/test_broker_deaths.py", 0, "over the cluster in memory tests/spark/reading"),
    Row("tests/spark/test_side_by_side.py", 2, "ten queries; two are fast"),
    Row("tests/spark/test_source.py::test_a_session", 0, "SQL finds the source without it"),
    Row("tests/spark/test_source.py::test_an_empty", 0, "tests/spark/reading by hand"),
    Row("tests/spark/test_source.py::test_columns", 0, "tests/spark/reading by hand"),
    Row("tests/spark/test_source.py::test_what_cannot", 1, "tests/spark/reading by hand"),
    Row("tests/spark/test_streams.py::test_a_stream_from", 0, "tests/spark/reading by hand"),
    Row("tests/spark/test_streams.py::test_a_checkpoint", 0, "tests/spark/reading has its offsets"),
    Row("tests/spark/test_sink.py::test_a_refusal", 1, FEW),
    Row("tests/spark/test_sink.py::test_a_batch_larger", 0, "tests/spark/writing is fast"),
    Row("tests/spark/test_sink.py::test_an_aggregate", 0, FEW),
    Row("tests/spark/test_sink.py::test_every_column", 1, FEW),
    Row("tests/spark/test_sink.py::test_keys_go", 0, "tests/spark/writing has its partitioner"),
    Row("tests/spark/test_submit.py", 0, "the lake job runs in one process; this one in two"),
)
MARK = pytest.mark.long


def mark(items: Sequence[pytest.Item]) -> None:
    """Mark what belongs to the long lane."""
    places: dict[str, int] = defaultdict(int)
    seeds: dict[tuple[str, str], set[Any]] = defaultdict(set)
    for item in items:
        function = function_of(item.nodeid)
        row = row_of(function)
        place = places[function]
        places[function] += 1
        if row is not None:
            if place >= row.fast:
                item.add_marker(MARK)
        elif not _is_an_early_seed(item, function, seeds):
            item.add_marker(MARK)


def row_of(function: str) -> Row | None:
    """The row of a test function; the one that names it most exactly."""
    rows = [row for row in LONG if function.startswith(row.prefix)]
    return max(rows, key=lambda row: len(row.prefix), default=None)


def function_of(nodeid: str) -> str:
    """`tests/a.py::test_b[1]` -> `tests/a.py::test_b`."""
    return nodeid.partition("[")[0]


def _is_an_early_seed(
    item: pytest.Item, function: str, seeds: dict[tuple[str, str], set[Any]]
) -> bool:
    """Whether the item has no seed, or one of the first of its course."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    fast = next((count for room, count in SEEDS_FAST.items() if function.startswith(room)), None)
    if SEED not in parameters or fast is None:
        return True
    others = str({name: str(value) for name, value in parameters.items() if name != SEED})
    early = seeds[function, others]
    if len(early) < fast:
        early.add(parameters[SEED])
    return parameters[SEED] in early

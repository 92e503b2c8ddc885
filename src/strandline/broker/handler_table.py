"""Which handler serves which API: the one table, from which ApiVersions is answered too.

Why:    what is advertised is exactly what is served.
How:    API key -> `Cold(handle)` or `Hot(start)` (see `context`). An API without a row is refused
        by the router, and clients do not see it. Versions are those of `protocol.apis.APIS`.
Source: STYLE, rule 4; kafka-protocol reference, table of APIs."""

from strandline.broker.context import Cold, Handler, Hot
from strandline.broker.handlers import (
    alter_partition_reassignments,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    describe_topology,
    elect_leaders,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    metadata,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)

HANDLERS: dict[int, Handler] = {
    0: Hot(produce.start),
    1: Hot(fetch.start),
    2: Hot(list_offsets.start),
    3: Cold(metadata.handle),
    8: Cold(offset_commit.handle),
    9: Cold(offset_fetch.handle),
    10: Cold(find_coordinator.handle),
    11: Cold(join_group.handle),
    12: Cold(heartbeat.handle),
    13: Cold(leave_group.handle),
    14: Cold(sync_group.handle),
    15: Cold(describe_groups.handle),
    16: Cold(list_groups.handle),
    18: Hot(api_versions.start),
    19: Cold(create_topics.handle),
    20: Cold(delete_topics.handle),
    21: Cold(delete_records.handle),
    22: Cold(init_producer_id.handle, max_version=5),  # Version 6 is about transactions.
    23: Cold(offset_for_leader_epoch.handle),
    32: Cold(describe_configs.handle),
    35: Cold(describe_log_dirs.handle),
    37: Cold(create_partitions.handle),
    42: Cold(delete_groups.handle),
    43: Cold(elect_leaders.handle),
    44: Cold(incremental_alter_configs.handle),
    45: Cold(alter_partition_reassignments.handle),
    46: Cold(list_partition_reassignments.handle),
    60: Cold(describe_cluster.handle),
    75: Cold(describe_topic_partitions.handle),
    20_000: Cold(describe_topology.handle),
}

"""The controller as a function: committed state and a command in, records and an answer out.

Why:    one table maps each command to the function that decides it; refusals become answers here.
Owns:   nothing; the state belongs to `ControllerState`, which only `replay` changes.
Source: STYLE, rule 1; design section 3."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from strandline.base.errors import ApiError
from strandline.base.rng import Rng
from strandline.controller.bucket_commands import IdentifyBucket
from strandline.controller.commands import (
    AllocateProducerIds,
    AlterConfigs,
    AlterLabels,
    AlterReassignments,
    AppointLeader,
    BalanceReplicas,
    BeginGrant,
    Command,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    EnsureInternalTopic,
    NoteRejoined,
    Refused,
    RegisterBroker,
    ReportVoters,
    RequestVoters,
    UnregisterBroker,
)
from strandline.controller.decide.alter_configs import decide_alter_configs
from strandline.controller.decide.balance import decide_balance_replicas
from strandline.controller.decide.broker_last_seen import decide_note_last_seen
from strandline.controller.decide.brokers import decide_register_broker, decide_unregister_broker
from strandline.controller.decide.buckets import decide_identify_bucket
from strandline.controller.decide.create_partitions import decide_create_partitions
from strandline.controller.decide.create_topics import decide_create_topics
from strandline.controller.decide.declared_losses import decide_declare_lost
from strandline.controller.decide.delete_topics import decide_delete_topics
from strandline.controller.decide.grants import decide_appoint_leader, decide_begin_grant
from strandline.controller.decide.internal_topics import decide_ensure_internal_topic
from strandline.controller.decide.labels import decide_alter_labels
from strandline.controller.decide.outages import decide_note_outages, decide_rule_domain
from strandline.controller.decide.producer_ids import decide_allocate_producer_ids
from strandline.controller.decide.quotas import decide_alter_quotas
from strandline.controller.decide.reassignments import decide_alter_reassignments
from strandline.controller.decide.recovered_partitions import decide_recover_partition
from strandline.controller.decide.rejoined import decide_note_rejoined
from strandline.controller.decide.rules import decide_create_rules, decide_delete_rules
from strandline.controller.decide.secrets import decide_alter_secrets
from strandline.controller.decide.voters import decide_report_voters, decide_request_voters
from strandline.controller.decision import Decision, Facts
from strandline.controller.loss_commands import DeclareLost, RecoverPartition
from strandline.controller.outage_commands import NoteLastSeen, NoteOutages, RuleDomain
from strandline.controller.quota_commands import AlterQuotas
from strandline.controller.reports import Reports
from strandline.controller.rule_commands import CreateRules, DeleteRules
from strandline.controller.state import ControllerState
from strandline.controller.user_commands import AlterSecrets
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId

_DECIDE: dict[type, Callable[[Facts, Any], Decision]] = {
    RegisterBroker: decide_register_broker,
    UnregisterBroker: decide_unregister_broker,
    AlterLabels: decide_alter_labels,
    CreateTopics: decide_create_topics,
    DeleteTopics: decide_delete_topics,
    CreatePartitions: decide_create_partitions,
    AlterConfigs: decide_alter_configs,
    AllocateProducerIds: decide_allocate_producer_ids,
    EnsureInternalTopic: decide_ensure_internal_topic,
    AlterReassignments: decide_alter_reassignments,
    BalanceReplicas: decide_balance_replicas,
    RequestVoters: decide_request_voters,
    ReportVoters: decide_report_voters,
    BeginGrant: decide_begin_grant,
    AppointLeader: decide_appoint_leader,
    DeclareLost: decide_declare_lost,
    RecoverPartition: decide_recover_partition,
    NoteLastSeen: decide_note_last_seen,
    RuleDomain: decide_rule_domain,
    NoteOutages: decide_note_outages,
    NoteRejoined: decide_note_rejoined,
    IdentifyBucket: decide_identify_bucket,
    CreateRules: decide_create_rules,
    DeleteRules: decide_delete_rules,
    AlterSecrets: decide_alter_secrets,
    AlterQuotas: decide_alter_quotas,
}


def decide(
    state: ControllerState,
    command: Command,
    *,
    alive: Collection[BrokerId],
    rng: Rng,
    voters: Collection[BrokerId] = (),
    reports: Reports | None = None,
    room: Reports | None = None,
    buckets: Mapping[str, Labels] | None = None,
    without_tiering: Mapping[BrokerId, bool] | None = None,
) -> Decision:
    """Decide a command on this committed state. No command of a client makes this raise.

    `alive`: the brokers heard now, the controller's leader included; `voters`: the voters of the
    controller's group; `reports`: the brokers' reports for this command; `room`: their latest
    reports of disk space; `buckets`: {bucket: where it is}; `without_tiering`: see `Facts`."""
    try:
        facts = Facts(
            state,
            rng,
            alive,
            voters,
            reports or {},
            room or {},
            buckets or {},
            without_tiering or {},
        )
        return _DECIDE[type(command)](facts, command)
    except ApiError as error:
        return Decision(Refused(error.code, error.message))

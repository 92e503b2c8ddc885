"""Registers brokers, and unregisters those that are gone for good.

Why:    two processes that run as the same broker would vote twice.
How:    Every start of a broker's process is one registration. A broker that lost its disk returns
        under its id with a new data directory; so would a second broker of the same id, but then
        the first one is alive. An operator can unregister a broker that is silent, holds no
        replica, and has no vote in the controller. A process that a supervisor started again by
        itself joins only if the cluster still knows its broker. Labels changed at run time stay,
        unless the configuration has another value than at the start before.
Source: Kafka's BrokerRegistration and UnregisterBroker (KIP-631, KIP-858);
        `ControllerState.has_lost`; decisions 0011 and 0015."""

from strandline.controller.commands import (
    BrokerAdmitted,
    BrokerTakenOff,
    RegisterBroker,
    UnregisterBroker,
)
from strandline.controller.decision import Decision, Facts, refuse
from strandline.controller.records import BrokerRegistered, BrokerUnregistered, ClusterNamed, Record
from strandline.model.cluster import Broker, Labels
from strandline.model.cluster_ids import new_cluster_id
from strandline.placement.topology.labels import carried_over
from strandline.protocol.errors import Error


def decide_register_broker(facts: Facts, command: RegisterBroker) -> Decision:
    """Admit a broker; the first one to register names the cluster."""
    records: list[Record] = []
    cluster_id = facts.state.cluster.cluster_id
    if not cluster_id:
        cluster_id = command.cluster_id or _new_cluster_id(facts)
        records.append(ClusterNamed(cluster_id))
    elif command.cluster_id not in ("", cluster_id):
        raise refuse(
            Error.INCONSISTENT_CLUSTER_ID,
            f"broker {command.broker} belongs to cluster {command.cluster_id}, "
            f"this is cluster {cluster_id}",
        )
    if command.must_be_known and command.broker not in facts.state.cluster.brokers:
        raise refuse(
            Error.BROKER_ID_NOT_REGISTERED,
            f"broker {command.broker} was unregistered: start it again to join anew",
        )
    _check_directory(facts, command)
    registered = BrokerRegistered(
        id=command.broker,
        incarnation=command.incarnation,
        directory_id=command.directory_id,
        rpc=command.rpc,
        kafka=command.kafka,
        labels=_labels(facts, command),
        configured=_configured(command),
        endpoints=command.endpoints,
    )
    if not _is_known(facts, registered):
        records.append(registered)
    return Decision(BrokerAdmitted(cluster_id), tuple(records))


def decide_unregister_broker(facts: Facts, command: UnregisterBroker) -> Decision:
    """Unregister a broker that is no longer needed."""
    broker, cluster = command.broker, facts.state.cluster
    if broker not in cluster.brokers:
        raise refuse(Error.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker}")
    if broker in facts.voters:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"broker {broker} has a vote in the controller: decommission it, and wait until "
            "another broker has taken its vote",
        )
    held = [one.name for one in cluster.groups.values() if broker in one.hosts]
    if held:
        noun = "replica" if len(held) == 1 else "replicas"
        raise refuse(
            Error.POLICY_VIOLATION,
            f"broker {broker} holds {len(held)} {noun}, {held[0]} among them: decommission it "
            "first",
        )
    if broker in facts.alive:
        raise refuse(Error.POLICY_VIOLATION, f"broker {broker} is up: stop it first")
    return Decision(BrokerTakenOff(), (BrokerUnregistered(broker),))


def _check_directory(facts: Facts, command: RegisterBroker) -> None:
    known = facts.state.directories.get(command.broker)
    if known is None or known.id == command.directory_id:
        return
    if command.broker in facts.alive:
        raise refuse(
            Error.DUPLICATE_BROKER_REGISTRATION,
            f"broker id {command.broker} is taken by a broker that is alive{_where(facts, command)}"
            f", with data directory {known.id}: give this broker another id",
        )


def _where(facts: Facts, command: RegisterBroker) -> str:
    """Where the broker of this id is."""
    known = facts.state.cluster.brokers.get(command.broker)
    if known is None:
        return ""
    host = f" on host {known.labels.host}" if known.labels.host else ""
    return f" at {known.rpc}{host}"


def _labels(facts: Facts, command: RegisterBroker) -> Labels:
    """Labels changed at run time come from the controller's state, all others from the broker."""
    known = facts.state.cluster.brokers.get(command.broker)
    if known is None or known.configured is None:
        return command.labels
    return carried_over(known.labels, said=known.configured, says=_configured(command))


def _configured(command: RegisterBroker) -> Labels:
    return command.labels if command.configured is None else command.configured


def _is_known(facts: Facts, registered: BrokerRegistered) -> bool:
    """Whether the state has this registration already: then the command is a repetition."""
    directory = facts.state.directories.get(registered.id)
    if directory is None or directory.id != registered.directory_id:
        return False
    return facts.state.cluster.brokers.get(registered.id) == Broker(
        id=registered.id,
        incarnation=registered.incarnation,
        rpc=registered.rpc,
        kafka=registered.kafka,
        labels=registered.labels,
        configured=registered.configured,
        endpoints=registered.endpoints,
    )


def _new_cluster_id(facts: Facts) -> str:
    return new_cluster_id(lambda count: facts.rng.getrandbits(8 * count).to_bytes(count, "big"))

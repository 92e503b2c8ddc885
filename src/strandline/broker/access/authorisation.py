"""Answers what a session may do, by the rules of the controller's log.

Why:    handlers ask one object, whether rules are enforced or not.
How:    The rules are read again once the controller's log has changed them, or has changed the
        region of this broker: at the next question, so a change costs nothing by itself.
Owns:   the authoriser.
Source: decision 0069."""

from strandline.config.access_section import AccessSection
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.model.cluster import Cluster
from strandline.model.ids import BrokerId
from strandline.security.acls.authoriser import ALLOWED, RuleAuthoriser, Verdict
from strandline.security.acls.included import OPERATIONS_OF
from strandline.security.session import Session

RULES_OFF = "no authoriser is configured: every client may do everything"


class Authorisation:
    """See the module."""

    def __init__(self, config: AccessSection, cluster: Cluster, *, broker_id: BrokerId) -> None:
        self.is_enforced = config.enforce_rules
        self._cluster = cluster
        self._broker_id = broker_id
        self._authoriser = RuleAuthoriser(
            super_users=config.super_users, allows_without_rules=config.allow_without_rules
        )
        # The versions of the cluster that the authoriser has.
        self._seen_access = self._seen_labels = -1

    def allows(self, session: Session, operation: Operation, kind: Kind, name: str) -> bool:
        """Whether the session may do the operation with the resource."""
        return self.judge(session, operation, kind, name).is_allowed

    def judge(self, session: Session, operation: Operation, kind: Kind, name: str) -> Verdict:
        """The same, and the groups whose rules decided."""
        if not self.is_enforced:
            return ALLOWED
        cluster = self._cluster
        if (  # `_refresh` looks at the same; but a call for each request costs.
            cluster.access.version != self._seen_access
            or cluster.rules_version != self._seen_labels
        ):
            self._refresh()
        return self._authoriser.judge(session.caller, operation, kind, name)

    def allows_cluster(self, session: Session, operation: Operation) -> bool:
        """Whether the session may do the operation with the cluster as a whole."""
        return self.allows(session, operation, Kind.CLUSTER, CLUSTER_NAME)

    def allows_any(self, session: Session, operation: Operation, kind: Kind) -> bool:
        """Whether the session may do the operation with some resource of the kind."""
        if not self.is_enforced:
            return True
        self._refresh()
        return self._authoriser.allows_any(session.caller, operation, kind)

    def operations(self, session: Session, kind: Kind, name: str) -> int:
        """The operations that the session may do with the resource: a bit for each, at the place
        of Kafka's number (KIP-430)."""
        return sum(
            1 << operation
            for operation in OPERATIONS_OF[kind]
            if self.allows(session, operation, kind, name)
        )

    def cluster_operations(self, session: Session) -> int:
        """The same of the cluster; none for a session that may not describe it."""
        if not self.allows_cluster(session, Operation.DESCRIBE):
            return 0
        return self.operations(session, Kind.CLUSTER, CLUSTER_NAME)

    def _refresh(self) -> None:
        cluster = self._cluster
        present = (cluster.access.version, cluster.rules_version)
        if present == (self._seen_access, self._seen_labels):
            return
        self._seen_access, self._seen_labels = present
        broker = cluster.brokers.get(self._broker_id)
        self._authoriser.set_rules(
            cluster.access.rules, region="" if broker is None else broker.labels.region
        )

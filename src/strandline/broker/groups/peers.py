"""Tells replication which brokers there are, and has them observe the controller's group.

Why:    replication knows addresses and links; the controller's state knows brokers and labels.
How:    after each change of the cluster: addresses, regions, and nearness. On the leader of the
        controller's group: every broker that does not vote in that group observes it, and the
        votes of brokers that leave move (`controller_votes`).
Owns:   whether the members of the controller's group are due for another look.
Source: design sections 3 and 5."""

from functools import partial

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.groups.controller_votes import waits_for_voter, wanted_voters
from strandline.config.broker import BrokerConfig
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica

CHANGE_RETRY_MS = 200


class Peers:
    """See the module; one per broker."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        replication: Replication,
        controller: ControllerHost,
    ) -> None:
        self._seeds = config.seeds
        self._clock = clock
        self._replication = replication
        self._controller = controller
        self._is_retry_due = False

    def add_seeds(self) -> None:
        """Make the voters of the controller's group known, before any state is."""
        for seed in self._seeds:
            self._replication.set_peer(seed.id, seed.address.host, seed.address.port)

    def refresh(self) -> None:
        """Go by the brokers of the state as it is."""
        self._set_addresses()
        self._place()

    def adjust_controller_group(self, replica: Replica) -> None:
        """Have every broker follow the controller's group, which is led here, and move the votes
        of brokers that leave."""
        cluster, present = self._controller.cluster, replica.configuration
        voters = present.voters
        # A state that lacks committed decisions may name a broker that no longer leaves.
        if not present.is_joint and self._controller.is_active:
            voters = wanted_voters(replica, cluster, [one.id for one in self._seeds])
        wanted = tuple(sorted(set(cluster.brokers) - set(voters)))
        if (present.voters, present.observers) != (voters, wanted) and not present.is_joint:
            replica.change_configuration(
                voters=voters, observers=wanted, min_insync=present.min_insync
            )
        is_done = replica.configuration.observers == wanted and not waits_for_voter(
            replica, cluster
        )
        if not is_done and not self._is_retry_due:
            # Another change is under way, or a vote waits for a broker that can take it.
            self._is_retry_due = True
            self._clock.call_later(CHANGE_RETRY_MS, partial(self._adjust_again, replica))

    def _adjust_again(self, replica: Replica) -> None:
        self._is_retry_due = False
        if replica.is_leader:
            self.adjust_controller_group(replica)

    def _set_addresses(self) -> None:
        """Registered brokers are peers. A broker that is not registered, but heard, may be about to
        join, so it stays one."""
        brokers = self._controller.cluster.brokers
        for broker in brokers.values():
            self._replication.set_peer(broker.id, broker.rpc.host, broker.rpc.port)
        seeds = {seed.id for seed in self._seeds}
        for peer in self._replication.peers:
            if peer in brokers or peer in seeds or self._replication.is_peer_alive(peer):
                continue
            self._replication.remove_peer(peer)

    def _place(self) -> None:
        """Say where each broker runs, and which ones run in another region: none, for a broker that
        has no region."""
        brokers = self._controller.cluster.brokers
        self._replication.nearness.place({one.id: one.labels for one in brokers.values()})
        own = brokers.get(self._replication.self_id)
        region = "" if own is None else own.labels.region
        self._replication.throttle.place(
            broker.id for broker in brokers.values() if region and broker.labels.region != region
        )

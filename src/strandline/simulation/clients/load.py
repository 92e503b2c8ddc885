"""All clients of a run: which there are, when they begin and stop, and what they did.

Why:    the run and its verdicts ask for clients by what they do; a fault strikes any of them.
How:    made from the scenario, each with random numbers of its own.
Owns:   the clients.
Source: design section 10."""

import random
from collections.abc import Callable
from typing import TypeVar

from strandline.simulation.clients.clients import Client
from strandline.simulation.clients.consumers import Consumer
from strandline.simulation.clients.copies import Copy
from strandline.simulation.clients.deleters import Deleter
from strandline.simulation.clients.group_consumers import GroupConsumer
from strandline.simulation.clients.loss_declarations import LossDeclaration
from strandline.simulation.clients.near_readers import near_readers_of
from strandline.simulation.clients.operators import Operator
from strandline.simulation.clients.producers import Producer
from strandline.simulation.clients.reassignments import Reassigner
from strandline.simulation.clients.table_readers import TableReader
from strandline.simulation.clients.tier_uploads import TierUploader
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.tally import Tally

A = TypeVar("A", bound=Client)


class Load:
    """See the module."""

    def __init__(self, cluster: SimCluster) -> None:
        scenario = cluster.scenario
        self._cluster = cluster
        self.producers = [
            Producer(plan, cluster, random.Random(cluster.rng.getrandbits(64)), producer_id=at + 1)
            for at, plan in enumerate(scenario.producers)
        ]
        self._consumers = [
            Consumer(f"c{at}", cluster, random.Random(cluster.rng.getrandbits(64)))
            for at in range(scenario.consumer_count)
        ]
        self.group_consumers = [
            GroupConsumer(f"g{at}", cluster, random.Random(f"group {scenario.seed} {at}"))
            for at in range(scenario.group_consumer_count)
        ]
        self.near_readers = near_readers_of(cluster)
        self.table_readers = self._one_if(
            TableReader, "t tables", is_wanted=bool(scenario.tombstone_ratio)
        )
        self.deleters = self._one_if(
            Deleter, "d deletions", is_wanted=scenario.delete_interval_ms > 0
        )
        self.tier_uploaders = self._one_if(
            TierUploader, "v tiers", is_wanted=scenario.tier_interval_ms > 0
        )
        self.copies = self._one_if(Copy, "y copy", is_wanted=scenario.is_copied)
        self.reassigners = self._one_if(
            Reassigner, "m moves", is_wanted=scenario.move_interval_ms > 0
        )
        self.operators = self._one_if(Operator, "o operator", is_wanted=bool(scenario.changes))
        self.loss_declarations = self._one_if(
            LossDeclaration, "u declared losses", is_wanted=scenario.declares_losses
        )
        cluster.clients = self.clients

    def _one_if(
        self, kind: Callable[[str, SimCluster, random.Random], A], named: str, *, is_wanted: bool
    ) -> list[A]:
        """One client, where it is wanted. `named`: its name, and what it draws for."""
        name, _, purpose = named.partition(" ")
        rng = random.Random(f"{purpose} {self._cluster.scenario.seed}")
        return [kind(name, self._cluster, rng)] if is_wanted else []

    @property
    def clients(self) -> list[Client]:
        """All of them."""
        return [
            *self.producers,
            *self._consumers,
            *self.group_consumers,
            *self.near_readers,
            *self.table_readers,
            *self.deleters,
            *self.tier_uploaders,
            *self.copies,
            *self.reassigners,
            *self.operators,
            *self.loss_declarations,
        ]

    def start(self) -> None:
        """All begin."""
        for client in self.clients:
            client.start()

    def stop_writes(self) -> None:
        """Nothing new is written, and no replica is asked to move."""
        for client in (*self.producers, *self.tier_uploaders, *self.reassigners):
            client.stop()

    def stop_reads(self) -> None:
        """All others stop, too; operators end by themselves, and copies go on to the end."""
        for client in (
            *self._consumers,
            *self.group_consumers,
            *self.near_readers,
            *self.table_readers,
            *self.deleters,
            *self.loss_declarations,
        ):
            client.stop()

    def count(self, tally: Tally) -> None:
        """What they did."""
        tally.acknowledged_count = sum(p.acknowledged_count for p in self.producers)
        tally.commit_count = sum(one.commit_count for one in self.group_consumers)
        tally.generation_count = sum(one.generation_count for one in self.group_consumers)
        tally.read_count = sum(one.read_count for one in self._consumers)
        tally.read_count += sum(one.read_count for one in self.near_readers)
        tally.near_count = sum(one.near_count for one in self.near_readers)
        tally.table_count = sum(one.table_count for one in self.table_readers)
        tally.deletion_count = sum(one.deletion_count for one in self.deleters)
        tally.copied_record_count = sum(one.copied_count for one in self.copies)
        tally.upload_count = sum(one.live_count for one in self.tier_uploaders)
        tally.move_count = sum(one.move_count for one in self.reassigners)
        tally.ruling_count = sum(one.ruling_count for one in self.operators)
        tally.declared_count = sum(one.declared_count for one in self.loss_declarations)

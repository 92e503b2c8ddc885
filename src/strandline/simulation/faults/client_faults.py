"""What goes wrong between clients and a broker, while the brokers reach each other.

Why:    a client repeats a request if its answer is lost; the request must not take effect twice.
How:    one function for each kind, as in `faults`: requests that stall or vanish, answers that are
        lost, connections that are reset.
Owns:   nothing.
Source: design section 10; `connections`."""

import random

from strandline.simulation.clients.connections import ConnectedClient
from strandline.simulation.faults.fault_targets import End, over
from strandline.simulation.world.cluster import SimCluster
from strandline.simulation.world.scheduler import US_PER_MS


def stall_requests(cluster: SimCluster, rng: random.Random) -> End | None:
    """Clients that have given up a connection ask again on another one; what they sent on the
    first comes later, or never."""
    broker = rng.choice(cluster.leading_brokers() or list(cluster.scenario.brokers))
    stall_ms = rng.choice((500, 2_000, 5_000, 20_000))
    is_lost = rng.random() < 0.3
    how = "vanish" if is_lost else f"are {stall_ms} ms late"
    cluster.trace.add("world", f"requests on the connections of clients to broker {broker} {how}")
    for client in cluster.clients:
        client.stall(broker, None if is_lost else stall_ms * US_PER_MS)

    def end() -> None:
        for client in cluster.clients:
            client.reconnect(broker)

    return end


def lose_answers(cluster: SimCluster, rng: random.Random) -> End | None:
    """A broker does what some clients ask, and none of its answers comes, from a moment of each on,
    until they give that connection up."""
    broker = rng.choice(cluster.leading_brokers() or list(cluster.scenario.brokers))
    targets = _some_clients(cluster, rng)
    cluster.trace.add("world", f"broker {broker} is not heard by {_names(targets)}")
    connections = [(client, client.connection_to(broker)) for client in targets]
    begins = []
    for _, connection in connections:
        begin_ms = rng.choice((0, rng.randint(1, 500)))
        begins.append(cluster.scheduler.after(begin_ms * US_PER_MS, connection.lose_answers))

    def end() -> None:
        for begin in begins:
            begin.cancel()
        for client, connection in connections:
            client.give_up(connection)

    return end


def reset_clients(cluster: SimCluster, rng: random.Random) -> End | None:
    """Some clients lose their connections to a broker and notice; what they asked may be done."""
    broker = rng.choice(cluster.leading_brokers() or list(cluster.scenario.brokers))
    targets = _some_clients(cluster, rng)
    drops_requests = rng.random() < 0.5
    cluster.trace.add("world", f"connections of {_names(targets)} to broker {broker} are reset")
    for client in targets:
        client.reset(broker, drops_requests=drops_requests)
    return over


def _some_clients(cluster: SimCluster, rng: random.Random) -> list[ConnectedClient]:
    """About half of them, and one at least."""
    return [one for one in cluster.clients if rng.random() < 0.5] or [rng.choice(cluster.clients)]


def _names(clients: list[ConnectedClient]) -> str:
    return ", ".join(one.name for one in clients)

"""What must come true once every fault is over: service, balance, rest, silence.

Why:    losing nothing is half of the promise; a cluster that works again by itself is the other.
How:    `verdicts` waits for each, as long as it may take, and reports the outcome.
Owns:   nothing.
Source: design section 10 (Progress); section 5 (an idle group costs nothing)."""

from strandline.simulation.invariants.facts import (
    NOWHERE,
    BalanceAwaited,
    DamageAwaited,
    IdlePassed,
    RestAwaited,
    ServiceAwaited,
)
from strandline.simulation.invariants.invariants import Invariant


class Progress(Invariant):
    """Every group takes writes again, and the consumer group works again."""

    def on_service_awaited(self, fact: ServiceAwaited) -> None:
        """Each request for service was served."""
        if fact.what:
            message = f"{fact.what} within {fact.limit_ms} ms after the last fault"
            raise self.broken(message, fact.subject)


class BalancerProgress(Invariant):
    """Every placement is what its policy wants, and nothing moves or waits; brokers that are to
    leave hold nothing, those in maintenance lead nothing that others can."""

    def on_balance_awaited(self, fact: BalanceAwaited) -> None:
        """Nothing is left to do."""
        if fact.left:
            raise self.broken(f"{fact.left}, {fact.limit_ms} ms after the last fault", NOWHERE)


class Convergence(Invariant):
    """Every request is answered, and all members of a group have all of its log."""

    def on_rest_awaited(self, fact: RestAwaited) -> None:
        """Nothing is under way any more."""
        if fact.left:
            raise self.broken(fact.left, fact.subject)


class DamageMended(Invariant):
    """Where the scrub runs, rot is found and repaired, whether a reader meets it or not."""

    def on_damage_awaited(self, fact: DamageAwaited) -> None:
        """Nothing is left."""
        if fact.left:
            raise self.broken(
                f"{fact.left}, {fact.limit_ms} ms after all was at rest", fact.subject
            )


class HeartbeatsCoalesced(Invariant):
    """Idle brokers exchange heartbeats and their answers, and nothing else, however many groups."""

    def on_idle_passed(self, fact: IdlePassed) -> None:
        """No noise."""
        noise = fact.noise()
        if noise:
            raise self.broken(f"at rest: {noise}", NOWHERE)

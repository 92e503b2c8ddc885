"""One stop that did not come, drawn from all that could have: how long a rare stop lasts.

Why:    a policy that stops once in 10,000 years has no stop in 100 simulated ones, and its hours of
        stop are not zero.
How:    A year's history says at each moment which further losses would stop a partition, and at
        which rate they come. `Draw` picks one (partition, moment) in proportion to that rate. The
        year is then run once more for that partition alone, with this loss added, and the length of
        the stop measured. Expected number of stops times this length has the mean of the hours that
        are stopped, exactly: Mecke's formula for Poisson processes, as a stop begins with a loss.
Owns:   nothing beyond a year.
Source: decision 0053; Last and Penrose, "Lectures on the Poisson Process" (2017), chapter 4."""

import math
import random
from dataclasses import dataclass

from strandline.model.cluster import Roles
from strandline.pipeline.plan.losses import Loss
from strandline.pipeline.plan.shapes import Shape


@dataclass(frozen=True, slots=True)
class Moment:
    """A partition, by its replicas at the year's start, and its state at a time. Masks are over the
    positions of `shape`."""

    home: Roles
    at_h: float
    shape: Shape
    acting: int
    absent: int


class Draw:
    """Picks one moment of a year; each is as likely as its weight (a weighted reservoir of one)."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._total = 0.0
        self._moment: Moment | None = None

    def offer(self, weight: float, since_h: float, until_h: float, state: Moment) -> None:
        """A span in which `state` lasted; its time is drawn within the span."""
        self._total += weight
        if self._rng.random() * self._total < weight:
            at_h = since_h + self._rng.random() * (until_h - since_h)
            self._moment = Moment(state.home, at_h, state.shape, state.acting, state.absent)

    def loss(self) -> tuple[Roles, Loss] | None:
        """The partition, and a loss that stops it, with a duration of its own; None if nothing
        could have stopped any."""
        found, rng = self._moment, self._rng
        if found is None:
            return None
        behaviour = found.shape.behaviour
        places = behaviour.stopping(found.acting, found.absent)
        rates = [behaviour.domains[place][1].rate for place in places]
        (chosen,) = rng.choices(range(len(places)), [one.per_year for one in rates])
        rate = rates[chosen]
        hours = rate.hours * math.exp(rate.spread * rng.gauss(0.0, 1.0))
        is_destroyed = rng.random() < rate.destroyed
        number = found.shape.numbers[places[chosen]]
        return found.home, Loss(found.at_h, number, hours, is_destroyed)

"""A cluster whose outages are judged each few seconds; no controller, no log."""

from strandline.controller.balancer.health import UNSEEN_MS_MAX, Health
from strandline.controller.outages.alarms import Alarm, Alarms
from strandline.controller.outages.judging import Judgement, Outages, Rules, Scene
from strandline.model.cluster import NO_END_MS, Domain, Labels, Outage, Ruling
from strandline.model.ids import BrokerId

LOST_AFTER_MS = 900_000
WALL_MS = 1_700_000_000_000  # 22:13 UTC
EAST, WEST, EAST_A, WEST_A, WEST_B = (
    ("east",), ("west",), ("east", "a"), ("west", "a"), ("west", "b")
)  # fmt: skip


class Watched:
    """Brokers 1-3 in east/a, 4-6 in west/a, 7-9 in west/b; broker 1 is the controller."""

    def __init__(self, rules: Rules | None = None) -> None:
        self.rules = rules or Rules(lost_after_ms=LOST_AFTER_MS)
        places = (EAST_A, WEST_A, WEST_B)
        self.labels = {
            BrokerId(number): Labels(region=region, zone=zone)
            for number, (region, zone) in enumerate((one for one in places for _ in range(3)), 1)
        }
        self.silent: set[int] = set()
        self.unheard: dict[int, set[int]] = {}
        """{who tells: whom it does not hear though it lives}"""
        self.is_answered = True
        """Whether others tell the controller whom they hear."""
        self.spared: set[int] = set()
        self.idle: set[int] = set()
        self.outages: dict[Domain, Outage] = {}
        self.now_ms = 0
        self.told: list[str] = []
        self.raised: list[Alarm] = []
        self.noted_ms: dict[BrokerId, int] = {}
        self.back_ms: dict[Domain, int] = {}
        self.new_controller()
        self.wait(60_000)

    def new_controller(self) -> None:
        self.judge, self.health, self.alarms = Outages(), Health(), Alarms()

    def wait(self, duration_ms: int, *, is_noted: bool = True) -> Judgement:
        end_ms = self.now_ms + duration_ms
        while True:
            self.look(is_noted=is_noted)
            if self.now_ms >= end_ms:
                return self.found
            self.now_ms = min(end_ms, self.now_ms + UNSEEN_MS_MAX)

    def look(self, *, is_noted: bool = True) -> Judgement:
        alive = self.labels.keys() - self.silent
        hears = {one: frozenset(alive - self.unheard.get(one, set())) for one in alive}
        own = hears[BrokerId(1)]
        self.condition = self.health.step(
            self.now_ms,
            brokers=self.labels,
            alive=own,
            lost_after_ms=self.rules.lost_after_ms,
            spared=set(map(BrokerId, self.spared)),
            silent_ms=self.noted_ms,
        )
        scene = Scene(
            controller=BrokerId(1),
            now_ms=self.now_ms,
            wall_ms=WALL_MS + self.now_ms,
            brokers=self.labels,
            condition=self.condition,
            hears={
                one: them
                for one, them in hears.items()
                if one == 1 or (one in own and self.is_answered)
            },
            idle=set(map(BrokerId, self.idle)),
            outages=self.outages,
            back_ms=self.back_ms,
        )
        self.found = self.judge.step(scene, self.rules)
        self.raised += self.alarms.step(self.found, scene, self.noted_ms)
        self.noted_ms = {
            one: self.now_ms - since_ms for one, since_ms in self.condition.down_since_ms.items()
        }
        for domain, outage in self.found.wanted.items() if is_noted else ():
            if self.outages.get(domain, Outage()).is_down and not outage.is_down:
                self.back_ms[domain] = self.now_ms
            if outage == Outage():
                self.outages.pop(domain, None)
            else:
                self.outages[domain] = outage
        for one in self.found.happenings:
            if one.text not in self.told:
                self.told.append(one.text)
        return self.found

    @property
    def replaced(self) -> set[BrokerId]:
        """Whose replicas are made anew elsewhere."""
        return set((self.condition.lost | self.found.lost) - self.found.held.keys())

    @property
    def down(self) -> set[Domain]:
        return {one for one, view in self.found.domains.items() if view.is_down}

    @property
    def kinds(self) -> list[str]:
        return [f"{one.kind}: {one.subject}" for one in self.found.happenings]

    def rule(self, domain: Domain, ruling: Ruling, until_ms: int = NO_END_MS) -> None:
        known = self.outages.get(domain, Outage())
        self.outages[domain] = Outage(known.is_down, ruling, until_ms)

"""Reports what is wrong for a while with something that brokers have in common. Pure.

Why:    each broker's own log says what it finds, but an operator looks at the cluster.
How:    faults by subject --lasting--> one alarm a subject: begun after `BEGUN_MS`, over after
        `OVER_MS` without a fault. A new controller raises the present alarms again.
Owns:   since when each subject has a fault or none, and the reported alarms; on the active
        controller.
Source: decision 0068."""

from collections.abc import Mapping

from strandline.controller.outages.alarms import Alarm
from strandline.controller.outages.happenings import Happening, Kind

BEGUN_MS = 10_000
OVER_MS = 30_000


class FaultAlarms:
    """See the module. `noun`: what a subject is, before its name; `over`: the text for the end."""

    def __init__(self, kind: Kind, *, noun: str, over: str) -> None:
        self._kind = kind
        self._noun = noun
        self._over = over
        self._texts: dict[str, str] = {}
        """{subject: its present fault}"""
        self._since_ms: dict[str, int] = {}
        """{subject that has, or had, a fault: since when it has one, or none}"""
        self._begun_ms: dict[str, int] = {}
        """{subject with a reported alarm that is not over: since when}"""

    @property
    def happenings(self) -> list[Happening]:
        """The reported alarms that are not over."""
        return [
            Happening(self._kind, self._named(subject), self._text(subject), begun_ms)
            for subject, begun_ms in sorted(self._begun_ms.items())
        ]

    def step(self, now_ms: int, faults: Mapping[str, str]) -> list[Alarm]:
        """The alarms that begin or end now."""
        for subject in faults.keys() | self._since_ms.keys():
            if (subject in faults) != (subject in self._texts):
                self._since_ms[subject] = now_ms
        self._texts = dict(faults)
        found = []
        for subject, since_ms in sorted(self._since_ms.items()):
            lasting_ms, is_begun = now_ms - since_ms, subject in self._begun_ms
            if subject in faults and not is_begun and lasting_ms >= BEGUN_MS:
                self._begun_ms[subject] = since_ms
                found.append(self._alarm(subject, is_over=False))
            elif subject not in faults and lasting_ms >= OVER_MS:
                del self._since_ms[subject]
                if is_begun:
                    del self._begun_ms[subject]
                    found.append(self._alarm(subject, is_over=True))
        return found

    def _alarm(self, subject: str, *, is_over: bool) -> Alarm:
        return Alarm(self._kind, self._named(subject), is_over, self._text(subject))

    def _named(self, subject: str) -> str:
        return f"{self._noun} {subject}"

    def _text(self, subject: str) -> str:
        return f"{self._named(subject)}: {self._texts.get(subject) or self._over}"

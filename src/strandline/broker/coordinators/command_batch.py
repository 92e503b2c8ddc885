"""Batches commands that concern one Raft group each: the controller carries them out together.

Why:    when a broker dies, the leaders of thousands of partitions ask for other voters at once; one
        flush for each would take longer than the outage.
How:    Commands wait for their turn. The first one whose turn it is takes along one command of each
        other group. All are decided on the same committed state, and their records make one batch.
            A decision about one group depends on nothing that decisions about others change.
        Commands about the same group keep their order.
Owns:   the commands that wait.
Source: decision 0032."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from strandline.controller.commands import (
    Answer,
    AppointLeader,
    BeginGrant,
    Command,
    Refused,
    ReportVoters,
    RequestVoters,
)
from strandline.model.ids import GroupId
from strandline.protocol.errors import Error

OF_ONE_GROUP = RequestVoters | ReportVoters | BeginGrant | AppointLeader
COUNT_MAX = 500
"""How many are decided together: the decisions are one step of the loop."""


class CommandBatch:
    """See the module. `carry_out` is called while `turn` is held."""

    def __init__(
        self,
        turn: asyncio.Lock,
        carry_out: Callable[[Sequence[Command]], Awaitable[list[Answer]]],
    ) -> None:
        self._turn = turn
        self._carry_out = carry_out
        # {future of the answer: the command}, in the order in which they came.
        self._waiting: dict[asyncio.Future[Answer], OF_ONE_GROUP] = {}

    async def carry_out(self, command: OF_ONE_GROUP) -> Answer:
        """Carry out the command, with others or alone."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[answered] = command
        try:
            async with self._turn:
                # A command that was just cancelled may still be ahead of this one.
                while not answered.done():
                    await self._carry_out_some()
        finally:
            self._waiting.pop(answered, None)
        return await answered

    async def _carry_out_some(self) -> None:
        chosen: dict[GroupId, asyncio.Future[Answer]] = {}
        for answered, command in self._waiting.items():
            if len(chosen) < COUNT_MAX:
                chosen.setdefault(command.group, answered)
        commands = [self._waiting.pop(answered) for answered in chosen.values()]
        answers: Sequence[Answer] = ()
        try:
            answers = await self._carry_out(commands)
        finally:
            # After a cancellation all may have been carried out, or none; they can be repeated.
            none = [Refused(Error.REQUEST_TIMED_OUT, "given up")] * (len(commands) - len(answers))
            for answered, answer in zip(chosen.values(), (*answers, *none), strict=True):
                if not answered.done():
                    answered.set_result(answer)

"""Each callback of a flush is called, even if another one fails."""

import pytest
from tests.storage.storage_world import ManualClock

from strandline.base.errors import StorageError
from strandline.storage.disk.flusher import answer_all


def test_an_answer_that_fails_keeps_no_other_from_its_own() -> None:
    answered: list[OSError | None] = []
    failure = OSError(5, "flush failed")
    clock = ManualClock()

    def fail(error: OSError | None) -> None:
        raise StorageError("x.log", 0, expected="a header", found="none")

    answers = [(answered.append, None), (fail, None), (answered.append, failure)]
    with pytest.raises(StorageError):
        answer_all(answers, clock.call_soon)
    assert answered == [None]
    clock.run()
    assert answered == [None, failure]

"""The table of error codes is Kafka's: numbers, names, and what may be retried."""

from kio.schema.errors import ErrorCode

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error, is_retriable, message_of

ADDED_BY_KAFKA_4_4 = {134, 135, 136}


def test_numbers_names_and_retriable_flags_are_those_of_kio() -> None:
    theirs = {int(code): (code.name.upper(), code.retriable) for code in ErrorCode}
    ours = {int(code): (code.name, code.retriable) for code in Error}
    assert {code: row for code, row in ours.items() if code not in ADDED_BY_KAFKA_4_4} == theirs
    assert set(ours) == set(range(-1, 137))


def test_every_code_says_something_in_one_sentence() -> None:
    for code in Error:
        assert code.message.endswith(".") and "\n" not in code.message
    assert len({code.message for code in Error}) == len(Error)


def test_codes_off_the_wire_need_not_be_known() -> None:
    assert message_of(3) == Error.UNKNOWN_TOPIC_OR_PARTITION.message
    assert message_of(9999) == "Unknown error 9999."
    assert is_retriable(6) and not is_retriable(10) and not is_retriable(9999)


def test_an_api_error_takes_a_row_of_the_table() -> None:
    assert ApiError(Error.INVALID_CONFIG, "no").code == 40

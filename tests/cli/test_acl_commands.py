"""`strandline acl` refuses rules that would never mean what they say."""

from tests.cli.command_line import Run, run

__all__ = ["run"]  # The fixture.


def test_a_prefix_that_no_topic_has_is_refused_before_any_cluster_is_asked(run: Run) -> None:
    rule = ("--allow-principal", "User:mia", "--topic", "*", "--prefixed")
    code, out, err = run("acl", "create", *rule)
    assert (code, out) == (1, "")
    assert err == "error: --prefixed --topic *: no topic begins with *; * alone is every topic\n"

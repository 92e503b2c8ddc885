"""The scripts by name."""

from collections.abc import Callable, Iterator

from differential.access import login_script, rule_script, user_script
from differential.access.login_script import LoginTarget
from differential.access.steps import Answers, Step, play

SCRIPTS: dict[str, Callable[[], Iterator[Step]]] = {
    "rule-changes": rule_script.steps,
    "users": user_script.steps,
}
"""{script: its steps}"""
LOGINS = "logins"
SCRIPT_NAMES = (*SCRIPTS, LOGINS)


def play_script(name: str, target: LoginTarget) -> Answers:
    """The answers to a script."""
    if name == LOGINS:
        return login_script.play_logins(target)
    return play(target, SCRIPTS[name]())

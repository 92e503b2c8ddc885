"""Names in certificates become principals. Source: Kafka's SslPrincipalMapperTest, KIP-371."""

import pytest

from strandline.config.principal_rules import PrincipalRules, check_principal_rules

DUKE = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
RULES = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)


@pytest.mark.parametrize(
    ("name", "principal"),
    [
        (DUKE, "duke"),
        ("CN=duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE"),
        ("OU=sme,O=mycp", "OU=sme,O=mycp"),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_decides(name: str, principal: str) -> None:
    assert PrincipalRules(RULES).principal_name(name) == principal


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", DUKE, DUKE),
        ("", DUKE, DUKE),
        ("RULE:^CN=(.*?),.*$/$1/", DUKE, "Duke"),
        ("RULE:^CN=(.*?),.*$/$1/L", DUKE, "duke"),
        ("RULE:^CN=(.*?),.*$/$1/U", DUKE, "DUKE"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$2-$1/", DUKE, "ServiceUsers-Duke"),
        ("RULE:^CN=([^,ADEFLTU,]+)(,.*|$)/$1/", "CN=bob,OU=x", "bob"),
        ("RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/", "CN=bob", "bob"),
        ("RULE:^CN=(.*?),.*$/u\\/$1/", DUKE, "u/Duke"),
        ("RULE:^CN=(\\w+)\\/(\\w+)$/$1/", "CN=app/east", "app"),
        ("RULE:^CN=(.*?),.*$/$1$7/", DUKE, "Duke$7"),
        ("RULE:Duke/x/", DUKE, None),
        ("RULE:^CN=Alice.*$/alice/,RULE:^CN=Bob.*$/bob/", DUKE, None),
    ],
)
def test_rules_one_by_one(rules: str, name: str, principal: str | None) -> None:
    assert PrincipalRules(rules).principal_name(name) == principal


@pytest.mark.parametrize(
    "rules",
    [
        "default",
        "DEFAUL",
        "DEFAULT/L",
        "DEFAULT/L,DEFAULT",
        "RULE:",
        "RULE:CN=(.*?)",
        "RULE:CN=(.*?),OU=ServiceUsers.*",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/A",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/LU",
        "RULE:^CN=(.*?),OU=ServiceUsers.*$ /$1/L DEFAULT",
    ],
)
def test_text_that_is_no_rules_is_refused(rules: str) -> None:
    assert (check_principal_rules(rules) or "").startswith("must be DEFAULT, or RULE:pattern")


def test_a_wrong_pattern_is_refused_with_the_reason() -> None:
    reason = check_principal_rules("RULE:^CN=(.*$/$1/")
    assert reason is not None and reason.startswith("has the pattern '^CN=(.*$', which is wrong: ")

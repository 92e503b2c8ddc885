"""`strandline quota`: how much of a broker a user, a client id or an address may use.

How:    the keys have Kafka's names; kafka-configs.sh sets the same ones.
Source: docs/operating/security-quotas.md; KIP-546; decision 0070."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, counted, print_line, print_table, show
from strandline.security.quotas.keys import CLIENT_ID, IP, USER

if TYPE_CHECKING:
    from strandline.model.access import QuotaEntity

app = typer.Typer(
    help="Quotas: how much of a broker a user, a client id or an address may use.",
    no_args_is_help=True,
)

OfUser = Annotated[str, typer.Option("--user", metavar="NAME", help="A user.")]
OfClientId = Annotated[str, typer.Option("--client-id", metavar="ID", help="A client id.")]
DefaultUser = Annotated[
    bool, typer.Option("--default-user", help="Each user without a quota of its own.")
]
DefaultClientId = Annotated[
    bool, typer.Option("--default-client-id", help="Each client id without a quota of its own.")
]
OfAddress = Annotated[str, typer.Option("--ip", metavar="ADDRESS", help="An IP address.")]
DefaultAddress = Annotated[
    bool, typer.Option("--default-ip", help="Each address without a quota of its own.")
]


@app.command("set")
def set_(
    quotas: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE...",
            help="producer_byte_rate, consumer_byte_rate, remote_region_byte_rate (bytes per "
            "second and broker), "
            "request_percentage (100 is all of a broker's event loop), controller_mutation_rate "
            "(partitions made or removed per second and broker) or, of an address, "
            "connection_creation_rate (new connections per second and broker).",
            show_default=False,
        ),
    ],
    user: OfUser = "",
    client_id: OfClientId = "",
    default_user: DefaultUser = False,
    default_client_id: DefaultClientId = False,
    ip: OfAddress = "",
    default_ip: DefaultAddress = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Set quotas of a user, a client id, a user with a client id, or an address."""
    from strandline.client.operations.quotas import alter_quotas
    from strandline.security.quotas.entities import show_entity

    entity = _required(
        (USER, user, default_user),
        (CLIENT_ID, client_id, default_client_id),
        (IP, ip, default_ip),
    )
    values = dict(_value(entity, text) for text in quotas)
    with open_client(bootstrap, timeout) as client:
        alter_quotas(client, {entity: values})
    told = ", ".join(f"{key}={_number(value)}" for key, value in values.items())
    print_line(f"{show_entity(entity)}: {told} on each broker")


@app.command("list")
def list_(
    user: OfUser = "",
    client_id: OfClientId = "",
    default_user: DefaultUser = False,
    default_client_id: DefaultClientId = False,
    ip: OfAddress = "",
    default_ip: DefaultAddress = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """List quotas: all, or those of the named user, client id or address."""
    from strandline.client.operations.quotas import list_quotas

    entity = _entity(
        (USER, user, default_user),
        (CLIENT_ID, client_id, default_client_id),
        (IP, ip, default_ip),
    )
    with open_client(bootstrap, timeout) as client:
        found = list_quotas(client, entity)
    _show(found, as_json=as_json)


@app.command()
def delete(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="Only these; default: all.", show_default=False),
    ] = None,
    user: OfUser = "",
    client_id: OfClientId = "",
    default_user: DefaultUser = False,
    default_client_id: DefaultClientId = False,
    ip: OfAddress = "",
    default_ip: DefaultAddress = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
) -> None:
    """Remove the quotas of a user, a client id, a user with a client id, or an address."""
    from strandline.client.operations.quotas import alter_quotas, list_quotas
    from strandline.security.quotas.entities import show_entity

    entity = _required(
        (USER, user, default_user),
        (CLIENT_ID, client_id, default_client_id),
        (IP, ip, default_ip),
    )
    with open_client(bootstrap, timeout) as client:
        present = list_quotas(client, entity).get(entity, {})
        missing = [one for one in keys or () if one not in present]
        if missing or not present:
            what = f"no quota {missing[0]}" if missing else "no quotas"
            raise OperatorError(
                f"{show_entity(entity)} has {what}: `strandline quota list` shows them all"
            )
        removed = dict.fromkeys(keys or present)
        alter_quotas(client, {entity: removed})
    print_line(f"{show_entity(entity)}: {', '.join(removed)} removed")


# ---- words ---------------------------------------------------------------------------------------


def _entity(*named: tuple[str, str, bool]) -> "QuotaEntity":
    """The entity of (type, name or nothing, whether it is the default). Raises OperatorError."""
    from strandline.security.quotas.entities import entity_of

    if any(name and is_default for _, name, is_default in named):
        raise OperatorError("a name and the default exclude each other: give one of the two")
    return entity_of(
        [(kind, name or None) for kind, name, is_default in named if name or is_default]
    )


def _required(*named: tuple[str, str, bool]) -> "QuotaEntity":
    from strandline.security.quotas.entities import why_illegal

    entity = _entity(*named)
    if not entity:
        raise OperatorError(
            "say whose quotas: --user, --client-id, --ip, --default-user, --default-client-id or "
            "--default-ip"
        )
    reason = why_illegal(entity)
    if reason is not None:
        raise OperatorError(reason)
    return entity


def _value(entity: "QuotaEntity", text: str) -> tuple[str, float]:
    """The key and the value of KEY=VALUE. Raises OperatorError."""
    from strandline.security.quotas.entities import why_illegal_value
    from strandline.security.quotas.keys import QUOTA_KEYS

    key, equals, number = text.partition("=")
    if key not in QUOTA_KEYS:
        raise OperatorError(f"{text}: there is no quota {key!r}: use {', '.join(QUOTA_KEYS)}")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not equals or not value:
        raise OperatorError(f"{text}: must be {key}=NUMBER, above 0")
    reason = why_illegal_value(entity, key, value)
    if reason is not None:
        raise OperatorError(f"{text}: {reason}")
    return key, value


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else str(value)


def _show(found: "dict[QuotaEntity, dict[str, float]]", *, as_json: bool) -> None:
    from strandline.security.quotas.entities import show_entity

    rows = [
        (entity, key, value)
        for entity, values in sorted(found.items(), key=lambda one: show_entity(one[0]))
        for key, value in sorted(values.items())
    ]

    def print_all() -> None:
        lines = [(show_entity(entity), key, _number(value)) for entity, key, value in rows]
        if lines:
            print_table(Table(("ENTITY", "QUOTA", "VALUE"), lines))
        print_line(counted(len(rows), "quota"))

    told: list[Json] = [
        {
            "entity": [{"type": kind, "name": name} for kind, name in entity],
            "quota": key,
            "value": value,
        }
        for entity, key, value in rows
    ]
    show(told, as_json=as_json, people=print_all)

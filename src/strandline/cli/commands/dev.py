"""`strandline dev`: a local cluster of real processes in several regions.

Source: design section 10; docs/reference/cli.md."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_DEV_DIRECTORY, AsJson, DevDirectory
from strandline.cli.output import Table, print_line, print_table, program, show

if TYPE_CHECKING:
    from strandline.cli.dev.cluster_file import ClusterDirectory
    from strandline.cli.dev.lifecycle import BrokerStatus
    from strandline.cli.dev.plan import Plan, PlannedBroker
    from strandline.cli.dev.secure_files import SecureFiles

DEFAULT_REGIONS = "east=2,west=2,south=1"
DEFAULT_PORT_BASE = 19_092

app = typer.Typer(
    help="Run a local cluster of real brokers in several regions.", no_args_is_help=True
)
broker_app = typer.Typer(
    help="Kill, start, pause and resume one broker; add and remove brokers for good.",
    no_args_is_help=True,
)
region_app = typer.Typer(help="Kill and start a whole region.", no_args_is_help=True)
app.add_typer(broker_app, name="broker")
app.add_typer(region_app, name="region")

BrokerNumber = Annotated[int, typer.Argument(metavar="N", help="The broker's id.")]
BrokerNumbers = Annotated[list[int], typer.Argument(metavar="N...", help="The brokers' ids.")]
Secure = Annotated[
    bool,
    typer.Option(
        "--secure",
        help="A new cluster whose clients log in over TLS, as the users admin and app: DIR/secure "
        "has what they need. Brokers prove to each other who they are.",
    ),
]
RegionName = Annotated[str, typer.Argument(metavar="NAME", help="The region.")]


@app.command()
def start(
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    regions: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=COUNT,...",
            help=f"Brokers in each region. New clusters: {DEFAULT_REGIONS}.",
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(
            metavar="A-B=MS,...",
            help="Simulated round trips between regions in milliseconds, as in "
            "east-west=30,east-south=80. Default: none. Kept for the next start.",
        ),
    ] = None,
    port_base: Annotated[
        int,
        typer.Option(
            metavar="PORT",
            min=1024,
            max=65_000,
            help="First Kafka port of a new cluster; skips ports in use.",
        ),
    ] = DEFAULT_PORT_BASE,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="SECTION.KEY=VALUE",
            help="Configuration of every broker, as in log.level=debug; may be repeated. Kept for "
            "the next start. metrics.port is broker 1's; each next broker has the next port.",
        ),
    ] = None,
    is_tiered: Annotated[
        bool,
        typer.Option(
            "--tiered",
            help="Give each region a bucket for tiered storage, in DIR/buckets/REGION. Kept for "
            "the next start. Topics with remote.storage.enable=true use it. Unless it is set, "
            "storage.retention_check_interval_ms becomes 5000: local retention shows in seconds.",
        ),
    ] = False,
    is_secure: Secure = False,
    as_json: AsJson = False,
) -> None:
    """Start the cluster, or a new one if there is none; returns when every broker serves. Keeps
    edited config.toml files."""
    from strandline.cli.dev.spawner import Spawner

    # It imports the broker while this process imports what it needs itself.
    with Spawner() as spawner:
        from strandline.cli.dev.lifecycle import LocalCluster, StartOptions

        cluster = LocalCluster(directory, spawn=spawner.spawn)
        wanted = tuple(settings or ())
        options = StartOptions(regions, rtt, port_base, wanted, is_tiered, is_secure)
        cluster.start(options, default_regions=DEFAULT_REGIONS, new_id=_new_cluster_id())
    plan, statuses = cluster.status()
    show(
        _describe(plan, statuses, cluster.directory),
        as_json=as_json,
        people=lambda: _print_started(plan, statuses, cluster.directory),
    )


@app.command()
def stop(
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    remove: Annotated[
        bool, typer.Option("--remove", help="Then delete the directory with all data.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stop every broker: SIGTERM first, SIGKILL after 10 seconds."""
    from strandline.cli.dev.lifecycle import LocalCluster

    killed = [broker.id for broker in LocalCluster(directory).stop(remove=remove)]

    def people() -> None:
        print_line("removed" if remove else "stopped; the data stays for the next start")
        for number in killed:
            print_line(f"broker {number} did not stop within 10 s and was killed")

    show({"removed": remove, "killed": killed}, as_json=as_json, people=people)


@app.command()
def status(directory: DevDirectory = DEFAULT_DEV_DIRECTORY, as_json: AsJson = False) -> None:
    """Show every broker; exit code 10 unless all serve."""
    from strandline.cli.dev.lifecycle import LocalCluster
    from strandline.cli.exit_codes import UNHEALTHY

    cluster = LocalCluster(directory)
    plan, statuses = cluster.status()
    show(
        _describe(plan, statuses, cluster.directory),
        as_json=as_json,
        people=lambda: _print_brokers(statuses, cluster.directory),
    )
    if not all(one.is_serving for one in statuses):
        raise typer.Exit(UNHEALTHY)


@broker_app.command("kill")
def broker_kill(
    numbers: BrokerNumbers,
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Kill brokers at once (SIGKILL), like a crash."""
    from strandline.cli.dev.lifecycle import LocalCluster

    ids = LocalCluster(directory).kill_brokers(_chosen(numbers))
    _show_change(ids, as_json=as_json, done="killed", nothing=f"{_named(numbers)} down already")


@broker_app.command("start")
def broker_start(
    numbers: BrokerNumbers,
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Start brokers again; returns when they serve.

    After the loss of a majority, name enough brokers for a majority: none serves alone."""
    from strandline.cli.dev.spawner import Spawner

    with Spawner() as spawner:
        from strandline.cli.dev.lifecycle import LocalCluster

        cluster = LocalCluster(directory, spawn=spawner.spawn)
        ids = cluster.start_brokers(_chosen(numbers))
    _show_change(ids, as_json=as_json, done="started", nothing=f"{_named(numbers)} up already")


@broker_app.command("pause")
def broker_pause(
    number: BrokerNumber,
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Pause a broker (SIGSTOP): it keeps its connections but does not answer."""
    from strandline.cli.dev.lifecycle import LocalCluster

    LocalCluster(directory).pause_broker(number)
    _show_change([number], as_json=as_json, done="paused", nothing="")


@broker_app.command("resume")
def broker_resume(
    number: BrokerNumber,
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Resume a paused broker (SIGCONT)."""
    from strandline.cli.dev.lifecycle import LocalCluster

    LocalCluster(directory).resume_broker(number)
    _show_change([number], as_json=as_json, done="resumed", nothing="")


@broker_app.command("add")
def broker_add(
    region: Annotated[
        str, typer.Option("--region", metavar="NAME", help="Its region, which may be a new one.")
    ],
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    as_json: AsJson = False,
) -> None:
    """Add a broker with the next id to the running cluster, for good; returns when it serves."""
    from strandline.cli.dev.spawner import Spawner

    with Spawner() as spawner:
        from strandline.cli.dev.lifecycle import LocalCluster

        cluster = LocalCluster(directory, spawn=spawner.spawn)
        added = cluster.add_broker(region)
    plan = cluster.directory.require()
    is_linked = any(plan.link_rtt_ms(added, one) for one in plan.brokers if one != added)

    def people() -> None:
        print_line(f"broker {added.id} added in {added.region}: {added.address}")
        if is_linked:
            print_line(
                f"simulated round trips: only what broker {added.id} sends is delayed, until the "
                "other brokers start again"
            )

    told: dict[str, Json] = {
        "broker": added.id, "region": added.region, "address": added.address,
    }  # fmt: skip
    show(told, as_json=as_json, people=people)


@broker_app.command("remove")
def broker_remove(
    number: BrokerNumber,
    directory: DevDirectory = DEFAULT_DEV_DIRECTORY,
    remove: Annotated[
        bool, typer.Option("--remove", help="Then delete its directory with all data.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove a broker for good: stop and unregister it. Refused unless it was decommissioned and
    is empty."""
    from strandline.cli.dev.lifecycle import LocalCluster

    cluster = LocalCluster(directory)
    gone = cluster.remove_broker(number, remove_data=remove)
    kept = cluster.directory.files(gone).directory

    def people() -> None:
        print_line(f"broker {number} removed" + ("" if remove else f"; its data stays in {kept}"))

    show({"broker": number, "removed": remove}, as_json=as_json, people=people)


@region_app.command("kill")
def region_kill(
    name: RegionName, directory: DevDirectory = DEFAULT_DEV_DIRECTORY, as_json: AsJson = False
) -> None:
    """Kill every broker of a region at once (SIGKILL)."""
    from strandline.cli.dev.lifecycle import LocalCluster

    ids = LocalCluster(directory).kill_brokers(lambda plan: plan.brokers_in(name))
    _show_change(
        ids, as_json=as_json, done="killed", nothing=f"every broker in {name} was down already"
    )


@region_app.command("start")
def region_start(
    name: RegionName, directory: DevDirectory = DEFAULT_DEV_DIRECTORY, as_json: AsJson = False
) -> None:
    """Start every broker of a region again; returns when they serve."""
    from strandline.cli.dev.spawner import Spawner

    with Spawner() as spawner:
        from strandline.cli.dev.lifecycle import LocalCluster

        cluster = LocalCluster(directory, spawn=spawner.spawn)
        ids = cluster.start_brokers(lambda plan: plan.brokers_in(name))
    _show_change(
        ids, as_json=as_json, done="started", nothing=f"every broker in {name} was up already"
    )


def _new_cluster_id() -> str:
    import secrets

    from strandline.model.cluster_ids import new_cluster_id

    return new_cluster_id(secrets.token_bytes)


def _chosen(numbers: Sequence[int]) -> "Callable[[Plan], Sequence[PlannedBroker]]":
    return lambda plan: [plan.broker(number) for number in dict.fromkeys(numbers)]


def _named(numbers: Sequence[int]) -> str:
    """As the subject of a sentence, with its verb."""
    if len(numbers) == 1:
        return f"broker {numbers[0]} was"
    return f"brokers {', '.join(map(str, numbers))} were"


def _replicas(plan: "Plan") -> int:
    """The largest odd number of replicas that the cluster has brokers for, at most five."""
    count = min(len(plan.brokers), 5)
    return count - 1 + count % 2


def _show_change(changed: Sequence[int], *, as_json: bool, done: str, nothing: str) -> None:
    def people() -> None:
        for number in changed:
            print_line(f"broker {number} {done}")
        if not changed:
            print_line(nothing)

    show({"brokers": list(changed), "done": done}, as_json=as_json, people=people)


def _describe(
    plan: "Plan", statuses: "Sequence[BrokerStatus]", directory: "ClusterDirectory"
) -> Json:
    return {
        "cluster_id": plan.cluster_id,
        "directory": str(directory.path),
        "bootstrap": plan.bootstrap,
        "healthy": all(one.is_serving for one in statuses),
        "brokers": [
            {
                "id": one.broker.id,
                "address": one.broker.address,
                "pid": one.pid,
                "state": one.state.value,
                "serving": one.is_serving,
                "labels": {"region": one.broker.region},
                "data_directory": str(directory.files(one.broker).data),
                "log_file": str(directory.files(one.broker).log),
                "config_file": str(directory.files(one.broker).config),
            }
            for one in statuses
        ],
    }


def _print_started(
    plan: "Plan", statuses: "Sequence[BrokerStatus]", directory: "ClusterDirectory"
) -> None:
    is_default = directory.path == DEFAULT_DEV_DIRECTORY.absolute()
    at = "" if is_default else f" --dir {directory.path}"
    _print_brokers(statuses, directory)
    print_line("")
    for one in directory.edited(plan):
        print_line(f"kept       {directory.files(one).config}, which was edited")
    print_line(f"bootstrap  {plan.bootstrap}")
    target = "" if is_default else f" -b {plan.brokers[0].address}"
    if plan.is_secure and not is_default:
        target = f" --client-config {directory.secure.client('admin')}"
    typed = program()
    print_line(f"next       {typed} topic create hello -p 3 -r {_replicas(plan)}{target}")
    print_line(f"           echo hi | {typed} produce hello{target}")
    if plan.is_secure:
        _print_clients(directory.secure, plan.metrics_port(plan.brokers[0]))
    print_line(f"stop       {typed} dev stop{at}")


def _print_clients(files: "SecureFiles", http_port: int) -> None:
    """The one line that each kind of client needs. `http_port`: of the first broker; 0 for none."""
    print_line("")
    print_line(f"commands   {program()} --client-config {files.client('app')} topic list")
    print_line(f"kcat       kcat -F {files.client('app')} -L")
    print_line(f"Java       --command-config {files.java_client('app')}")
    print_line(
        "           app: every topic and group; admin: everything, and what commands use here"
    )
    if http_port:
        url = f"https://127.0.0.1:{http_port}"
        print_line(f"console    {url}/ (any user; the password is in {files.http_token})")
        print_line(
            f'metrics    curl --cacert {files.trust} -u ":$(cat {files.http_token})" {url}/metrics'
        )


def _print_brokers(statuses: "Sequence[BrokerStatus]", directory: "ClusterDirectory") -> None:
    print_table(
        Table(
            heads=("BROKER", "REGION", "KAFKA", "PID", "STATE", "LOG"),
            right=frozenset({"BROKER", "PID"}),
            rows=[
                (
                    one.broker.id,
                    one.broker.region,
                    one.broker.address,
                    one.pid or "-",
                    "serving" if one.is_serving else one.state.value,
                    str(directory.files(one.broker).log),
                )
                for one in statuses
            ],
        )
    )

"""`make chaos`: five brokers in three regions, real clients, and the faults of a seed.

How:    prints the plan -> makes network, disk, brokers and clients -> begins and ends the faults ->
        waits until everything works again, the groups have read all, and the replicas are equal ->
        stops the brokers in order, and compares what clients saw with what is on the disks. Exit
        code 0 if every promise held, 1 if one was broken, 2 if the run could not be made, 130 on
        Ctrl-C. Only its directory is left, after a violation or with KEEP=1."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from chaos.access.files import SecureFiles
from chaos.access.plan import AccessFault, draw_access
from chaos.access.promises import judge_impostors, judge_probes, judge_rules
from chaos.access.runner import AccessRunner
from chaos.brokers import Brokers
from chaos.faults import FaultRunner, World
from chaos.history import History
from chaos.hosts import BROKER_IDS, IDS_PER_MACHINE, ChaosError
from chaos.machines import Machines
from chaos.mixed_releases import MixedReleases, draw_mixed
from chaos.network import Network
from chaos.plan import Plan, draw_plan
from chaos.progress import Ending
from chaos.promises import Judge
from chaos.replica_logs import ReplicaLog, find_logs
from chaos.report import MINUTE_MS, Report, command_of
from chaos.small_disk import SmallDisk
from chaos.workload import TOPICS, Workload, idempotent_names
from strandline.model.ids import GroupId, Index

DEFAULT_MINUTES = 10.0
TOOLS = ("ip", "nsenter", "mount", "umount", "mkfs.ext4")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is asked for. `access`: faults of access; None for a run in the clear.
    `releases`: None if all brokers run these sources."""

    plan: Plan
    access: tuple[AccessFault, ...] | None
    releases: MixedReleases | None
    keep: bool


def play(settings: Settings, work: Path, report: Report) -> dict[str, str]:
    """All acts; the breaches, {promise: how}. Afterwards nothing runs."""
    judge = Judge(idempotent_names())
    plan = settings.plan
    with ExitStack() as stack:
        # What was last put here is undone first: nothing interrupts the rest.
        stack.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        network = stack.enter_context(Network(work))
        secure = None if settings.access is None else SecureFiles(work)
        frugal = 0 if plan.preallocates else plan.small_disk
        brokers = (
            Machines(work, network, frugal=frugal, cores=plan.cores)
            if plan.cores
            else Brokers(work, network, frugal=frugal, secure=secure, releases=settings.releases)
        )
        data = brokers.data(plan.small_disk)
        disk = stack.enter_context(SmallDisk(data, image=work / "small-disk.img"))
        stack.callback(brokers.end)
        workload = Workload(work, network, say=report.say, secure=secure, cores=plan.cores)
        stack.callback(workload.end)
        access = None
        if secure is not None and settings.access is not None:
            access = AccessRunner(settings.access, secure, network, work=work, say=report.say)
            stack.callback(access.end)
        stack.callback(signal.signal, signal.SIGTERM, signal.SIG_IGN)
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        brokers.start(BROKER_IDS)
        workload.make_topics()
        if access is not None:
            access.set_up()
        workload.start()
        report.say("brokers and clients run; faults:")
        runner = FaultRunner(plan, World(network, brokers, disk), say=report.say)

        def look() -> None:
            workload.check()
            workload.read_on()
            if access is not None:
                access.look()

        def look_at_all() -> None:
            runner.look_after()
            look()

        runner.run(look)
        report.say("the faults are over")
        if access is not None:
            access.finish()
        ending = Ending(workload, judge, look_at_all)
        ending.play()
        logs = find_logs(brokers.data_directories())
        commits = ending.wait_converged(logs)
        brokers.stop()
        brokers.check_ends(small_disk=plan.small_disk)
        report.say("everything has ended; comparing what was seen with what is on the disks")
        judge_all(judge, brokers, workload, logs, commits, report)
        report.counts(plan, workload.begun())
        if access is not None:
            judge_access(judge, access, workload, settings.access or (), report)
        groups = {log.place: log.group for log in logs}
        command = command_of(plan, is_secure=access is not None, releases=settings.releases)
        report.verdict(plan, judge.breaches, command=command, groups=groups, work=work)
        if judge.breaches or settings.keep:
            disk.keep(work / "small-disk-data")
    return judge.breaches


def judge_all(
    judge: Judge,
    brokers: Brokers,
    workload: Workload,
    logs: Sequence[ReplicaLog],
    commits: dict[GroupId, Index],
    report: Report,
) -> None:
    """What clients saw, against the logs of brokers that have ended."""
    for complaint in brokers.complaints:
        judge.fail(f"NoUnexpectedError: {complaint}")
    history = History(judge, {log.place: log.group for log in logs})
    history.replay(workload.begun())
    history.audit(logs, commits, TOPICS)
    led_count = history.lead(brokers.leaders())
    report.say(f"somebody began to lead a partition {led_count} times")
    report.say(
        f"written again by clients in a new epoch: {judge.duplicates.rewritten_count} records"
    )
    made = brokers.count_in_logs(": promote broker")
    left = brokers.count_in_logs(": demote broker")
    report.say(f"observers were made voters {made} times, and told to leave {left} times")


def judge_access(
    judge: Judge,
    access: AccessRunner,
    workload: Workload,
    faults: tuple[AccessFault, ...],
    report: Report,
) -> None:
    """What clients without a right got."""
    refused = judge_probes(workload.by_role("prober"), judge)
    refused_writes = judge.refused.refused_count
    judge_rules(faults, refused_writes, judge)
    judge_impostors(access.impostors, judge)
    report.access(
        faults,
        refused,
        refused_writes=refused_writes,
        commands=access.commands.done_count,
    )


def run(plan: Plan, report: Report, *, is_secure: bool, earlier: Path | None) -> bool:
    """Whether every promise held. The directory of the run goes, unless somebody wants it.

    `earlier`: a checkout of the release that two brokers run; None for none."""
    keep = os.environ.get("KEEP", "0") not in ("", "0")
    check_machine()
    report.plan(plan)
    releases = None if earlier is None else draw_mixed(plan.seed, earlier)
    if releases is not None:
        report.say(str(releases))
    access = draw_access(plan.seed, duration_ms=plan.duration_ms) if is_secure else None
    work = Path(tempfile.mkdtemp(prefix="strandline-chaos-"))
    try:
        breaches = play(Settings(plan, access, releases, keep), work, report)
    except KeyboardInterrupt:
        shutil.rmtree(work)
        raise
    except ChaosError as error:
        raise ChaosError(f"{error} (kept: {work})") from error
    if keep:
        report.say(f"kept: {work}")
    elif not breaches:
        shutil.rmtree(work)
    return not breaches


def check_machine() -> None:
    """Raises ChaosError where the faults cannot be made."""
    if os.geteuid() != 0:
        raise ChaosError("needs root: for network namespaces and a file system of its own")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise ChaosError(f"needs {', '.join(missing)} (Debian: iproute2, util-linux, e2fsprogs)")


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="chaos")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=DEFAULT_MINUTES)
    parser.add_argument("--secure", action="store_true", help="TLS, logins and rules")
    parser.add_argument(
        "--cores",
        type=int,
        default=0,
        choices=range(IDS_PER_MACHINE),
        metavar="N",
        help="machines of N brokers under a supervisor each",
    )
    parser.add_argument(
        "--earlier",
        type=Path,
        metavar="DIRECTORY",
        help="two brokers run the earlier release of which this is a checkout",
    )
    told = parser.parse_args()
    if told.cores and (told.secure or told.earlier):
        parser.error("--cores has no --secure and no --earlier: name one of them")
    for number in (signal.SIGINT, signal.SIGTERM):  # Also where a shell has had it ignored.
        signal.signal(number, signal.default_int_handler)
    report = Report()
    try:
        duration_ms = round(told.minutes * MINUTE_MS)
        plan = draw_plan(told.seed, duration_ms=duration_ms, cores=told.cores)
        held = run(plan, report, is_secure=told.secure, earlier=told.earlier)
    except ChaosError as error:
        report.say(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        report.say("interrupted; everything that was started has been ended")
        sys.exit(130)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()

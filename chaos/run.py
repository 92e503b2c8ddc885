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
from contextlib import ExitStack
from pathlib import Path

from chaos.brokers import Brokers
from chaos.faults import FaultRunner, World
from chaos.history import History
from chaos.hosts import BROKER_IDS, ChaosError
from chaos.network import Network
from chaos.plan import Plan, draw_plan
from chaos.progress import Ending
from chaos.promises import Judge
from chaos.replica_logs import find_logs
from chaos.report import MINUTE_MS, Report
from chaos.small_disk import SmallDisk
from chaos.workload import TOPICS, Workload, idempotent_names

DEFAULT_MINUTES = 10.0
TOOLS = ("ip", "nsenter", "mount", "umount", "mkfs.ext4")


def play(plan: Plan, work: Path, report: Report, *, keep: bool) -> dict[str, str]:
    """All acts; the breaches, {promise: how}. Afterwards nothing runs."""
    judge = Judge(idempotent_names())
    with ExitStack() as stack:
        # What was last put here is undone first: nothing interrupts the rest.
        stack.callback(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT))
        stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
        network = stack.enter_context(Network(work))
        data = work / f"broker-{plan.small_disk}" / "data"
        disk = stack.enter_context(SmallDisk(data, image=work / "small-disk.img"))
        brokers = Brokers(work, network, frugal=0 if plan.preallocates else plan.small_disk)
        stack.callback(brokers.end)
        workload = Workload(work, network, say=report.say)
        stack.callback(workload.end)
        stack.callback(signal.signal, signal.SIGTERM, signal.SIG_IGN)
        stack.callback(signal.signal, signal.SIGINT, signal.SIG_IGN)
        brokers.start(BROKER_IDS)
        workload.make_topics()
        workload.start()
        report.say("brokers and clients run; faults:")
        runner = FaultRunner(plan, World(network, brokers, disk), say=report.say)

        def look() -> None:
            workload.check()
            workload.read_on()

        def look_at_all() -> None:
            runner.look_after()
            look()

        runner.run(look)
        report.say("the faults are over")
        ending = Ending(workload, judge, look_at_all)
        ending.play()
        logs = find_logs({number: brokers.data(number) for number in BROKER_IDS})
        commits = ending.wait_converged(logs)
        brokers.stop()
        for complaint in brokers.complaints:
            judge.fail(f"NoUnexpectedError: {complaint}")
        report.say("everything has ended; comparing what was seen with what is on the disks")
        groups = {log.place: log.group for log in logs}
        history = History(judge, groups)
        history.replay(workload.begun())
        history.audit(logs, commits, TOPICS)
        led_count = history.lead(brokers.leaders())
        report.say(f"somebody began to lead a partition {led_count} times")
        report.counts(plan, workload.begun())
        report.say(
            f"written again by clients in a new epoch: {judge.duplicates.rewritten_count} records"
        )
        made = brokers.count_in_logs(": promote broker")
        left = brokers.count_in_logs(": demote broker")
        report.say(f"observers were made voters {made} times, and told to leave {left} times")
        report.verdict(plan, judge.breaches, groups=groups, work=work)
        if judge.breaches or keep:
            disk.keep(work / "small-disk-data")
    return judge.breaches


def run(plan: Plan, report: Report) -> bool:
    """Whether every promise held. The directory of the run goes, unless somebody wants it."""
    keep = os.environ.get("KEEP", "0") not in ("", "0")
    check_machine()
    report.plan(plan)
    work = Path(tempfile.mkdtemp(prefix="strandline-chaos-"))
    try:
        breaches = play(plan, work, report, keep=keep)
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
    told = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):  # Also where a shell has had it ignored.
        signal.signal(number, signal.default_int_handler)
    report = Report()
    try:
        held = run(draw_plan(told.seed, duration_ms=round(told.minutes * MINUTE_MS)), report)
    except ChaosError as error:
        report.say(f"error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        report.say("interrupted; everything that was started has been ended")
        sys.exit(130)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()

"""The promises over real processes, real clients and real faults: `make chaos SEED=1 MINUTES=10`.

Why:    the simulator has its own clock, network and disk; here nothing is simulated, so what it
        leaves out - sockets, the kernel, other people's clients - is under test as well.
Map:    run.py        the command: the acts in order (read this first), and the clearing up
        plan          plan.py (the faults that a seed stands for), targets.py (whom each kind can
                      strike), hosts.py (brokers and clients, where they are and how far apart)
        world         network.py (a namespace for each host), relay.py (the wide area between
                      them), brokers.py (their processes), small_disk.py (a disk that can be full),
                      processes.py (how processes begin and end), faults.py (the plan, carried out),
                      mixed_releases.py (brokers that run an earlier release)
        machines      machines.py (supervisors of several brokers), machine_targets.py (whom each
                      kind of fault can strike there)
        access        access/ (what a secure run adds: TLS, logins, rules, and their faults)
        workload      clients/ (the client programs), workload.py (which of them run where),
                      records.py (the records), ledger.py (what each client saw)
        verdict       progress.py (what is waited for at the end), replica_logs.py (what is on the
                      disks), history.py (ledgers and logs as facts), promises.py (the promises),
                      report.py (what is printed)
Source: design section 10; docs/internals/chaos.md."""

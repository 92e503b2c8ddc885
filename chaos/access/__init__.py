"""What a secure run adds: TLS everywhere, logins, rules, and faults of access: `SECURE=1`.

Map:    files.py      authorities, certificates, users and clients' configuration files
        plan.py       the faults of access that a seed stands for
        commands.py   commands of an operator, each until it succeeds
        runner.py     the plan, carried out beside that of the other faults
        promises.py   what clients without a right must never get
Source: docs/internals/chaos.md; docs/operating/security.md."""

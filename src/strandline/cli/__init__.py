"""The command line: what an operator types, and the one place that composes a real broker.

Map:    commands/      One file for each command group.
        dev/           Local clusters.
        drill/         Drills: cuts a part of a cluster off and measures the effect.
        machine/       Runs the brokers of one machine, a process for each core.
        server/        Composes a broker from its configuration and runs it.
        text/          What commands print: plans, explanations, warnings.
        main.py        the app, errors, exit codes
        output.py      tables for people, JSON for programs
        options.py     options that commands share
        parameters.py  reads plain options and arguments fast
        exit_codes.py  exit codes
        reference.py   the generated page of commands
Why:    `strandline --help` must be there at once: modules import what is slow where it is used.
Source: Design section 3.
"""

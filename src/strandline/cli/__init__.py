"""The command line: what an operator types, and the one place that puts a real broker together.

Map:    main.py (the app, errors, exit codes), commands/ (one file per command group), output.py
        (tables for people, JSON for programs), options.py (options that commands share),
        labels.py (where the broker is, asked when it starts), live_cluster.py (a running cluster as
        the solver sees it), restarts.py (who may be restarted), moves.py (what another policy
        would move), explaining.py (explanations of placements as text), losses.py (who acts after
        a loss, as text), losses_declared.py (what was given up, as text), leaderless.py (what to
        type where nobody leads), policy_notes.py (what may be wrong with a policy that was taken),
        writers.py (where writers are, as text), copy_rates.py (what copies may take, as text),
        exit_codes.py,
        broker_file.py (reads a broker's configuration file),
        open_files.py (how many a broker may have open), serve.py (composes a broker from its
        configuration and runs it),
        logs.py (logging), dev/ (local clusters), drill/ (parts of a cluster taken away and
        measured), reference.py (the generated page),
        stopped_broker.py (logs that are looked at offline).
Why:    `strandline --help` must be there at once: modules import what is slow where it is used.
Source: design section 3."""

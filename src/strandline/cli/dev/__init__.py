"""Local clusters of real broker processes, without root: created, started, killed, paused, stopped.

Map:    plan.py (regions, round trips and ports from the command line), cluster_file.py
        (DIR/cluster.json and each broker's TOML file), secure_files.py (certificates, users and
        clients' files of a secure cluster), processes.py (each broker's process;
        signals), spawner.py (imports the broker once and forks it), readiness.py (waits until all
        serve), departure.py (may a broker go for good?), lifecycle.py (start, stop, kill, add,
        remove, status).
Source: design sections 3 and 10."""

"""Local clusters of real broker processes, without root: made, started, killed, paused, stopped.

Map:    plan.py (regions, round trips and ports from the command line), cluster_file.py
        (DIR/cluster.json and each broker's TOML file), processes.py (which process is which broker;
        signals), spawner.py (imports the broker once and forks it), readiness.py (waits until all
        serve), lifecycle.py (start, stop, kill, status: the commands without their faces).
Source: design sections 3 and 10."""

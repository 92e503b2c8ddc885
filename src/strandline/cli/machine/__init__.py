"""Runs the brokers of one machine, a process for each core: `strandline serve --cores N`.

Map:    serve_machine.py  reads the file, starts the supervisor, ends it on a signal
        directory.py      the machine's data directory, and brokers that a smaller N leaves out
        supervisor.py     keeps the processes running
        restart_pause.py  how long to wait before a process starts again
        broker_process.py one process, and the supervisor's end of the link to it
        wire.py           what goes over the link
        entry.py          the entry point of a broker's process, and its end of the link
        endpoint.py       health and metrics of the machine over HTTP
        gate.py           which client may see what there
Source: docs/decisions/0071-cores.md."""

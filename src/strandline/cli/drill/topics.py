"""The names of drills' topics, and of the groups that read them; how they are deleted.

Why:    `drill cancel` removes them in an outage, and needs nothing else of a drill: importing all
        of it would take as long as the rest of the command.
Source: docs/decisions/0019-drills.md."""

TOPIC_PREFIX = "strandline-drill-"
SOON_MS = 6_000
"""The time-out of the first try to delete one. A broker gets a third of it: a controller that was
cut off may take the deletion and never decide it."""

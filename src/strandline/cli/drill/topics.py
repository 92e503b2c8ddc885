"""The names of drills' topics, and of the groups that read them.

Why:    `drill cancel` removes them in an outage, and needs nothing else of a drill: importing all
        of it would take as long as the rest of the command.
Source: docs/decisions/0019-drills.md."""

TOPIC_PREFIX = "strandline-drill-"

"""Opens the audit log of a broker's file.

Owns:   nothing.
Source: decision 0069."""

from pathlib import Path

from strandline.base.clock import Clock
from strandline.config.broker import BrokerConfig
from strandline.security.audit.audit_file import AuditFile
from strandline.security.audit.audit_log import AuditLog
from strandline.security.audit.trail import Trail


def open_audit_log(config: BrokerConfig, clock: Clock) -> AuditLog | None:
    """The audit log, not yet writing; None if the file names none. Raises OperatorError."""
    keys = config.access
    if not keys.audit_file:
        return None
    file = AuditFile(Path(keys.audit_file), bytes_max=keys.audit_bytes_max)
    file.check()
    trail = Trail(broker_id=config.broker_id, lines_per_s_max=keys.audit_lines_per_s_max)
    return AuditLog(trail, file, clock)

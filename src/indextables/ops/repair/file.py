"""One file of a log, as far as it can be judged by itself."""

from __future__ import annotations

from dataclasses import dataclass

from indextables.log.wire.actions import CommitInfo
from indextables.log.wire.files import Verdict
from indextables.log.wire.names import LogFile
from indextables.ops.repair.findings import Finding


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """One commit or checkpoint: whether it is whole, and what its last line says of it."""

    file: LogFile
    verdict: Verdict
    info: CommitInfo
    text_bytes: int
    findings: tuple[Finding, ...] = ()

    @property
    def usable(self) -> bool:
        """Nothing is known against this file; whoever wrote it."""
        return not self.findings

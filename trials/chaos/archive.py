"""Keep the evidence of a chaos trial in a file beside its logs.

Timing: once, at the end.
Model: sync.
Guarantee: best-effort.
Failure: bubble.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trials.chaos.rows import Evidence

NAME = "evidence.json"


def keep(evidence: Evidence, logs: Path) -> None:
    """Write the rows of platform and observer; the blueprints follow from the seed."""
    parts: dict[str, Sequence[Any]] = {
        "runs": evidence.runs,
        "steps": evidence.steps,
        "events": evidence.events,
        "starts": evidence.observed.starts,
        "dones": evidence.observed.dones,
        "effects": evidence.observed.effects,
        "violations": evidence.observed.violations,
    }
    rows = {name: [asdict(row) for row in found] for name, found in parts.items()}
    rows["cancelled"] = [{"execution": run_id} for run_id in evidence.cancelled]
    (logs / NAME).write_text(json.dumps(rows, default=str, indent=0), encoding="utf-8")

"""The limit that a run has met, by the code of its failure, and the way out. Pure."""

from collections.abc import Mapping
from types import MappingProxyType

from isolane.results import Code

_USE_LESS = "the stricter of its blueprint's and its tenant's: use less, or raise it"

WAYS_OUT: Mapping[str, str] = MappingProxyType(
    {
        Code.TIMEOUT: "The limit is a time: the timeout of the step, of its question or of the blueprint, the tenant's"
        " max_run_minutes, or, on a worker without cgroups, the CPU seconds that cpu gives each process",
        Code.RAM_EXCEEDED: f"The limit is ram_mb, {_USE_LESS}",
        Code.PROCESS_LIMIT: f"The limit is processes, {_USE_LESS}",
        Code.DISK_FULL: f"The limit is disk_mb, {_USE_LESS}",
    }
)

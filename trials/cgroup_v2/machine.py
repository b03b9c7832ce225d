"""The virtual machine: boots from the two disks, and shows its console.

Timing: half a minute and the tests; the processor is emulated.
Model: sync; qemu as a process, whose console is read line by line; a timer's thread ends it.
Guarantee: the disks are not changed; qemu ends with this process.
Failure: a guest that does not power off in time is ended.
"""

import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from trials.cgroup_v2.system import System

_KERNEL = "root=/dev/vda rw console=ttyS0 quiet loglevel=3 systemd.unit=isolane-trial.service systemd.show_status=0"


def run(system: System, project: Path, *, seconds: float, show: Callable[[str], None]) -> list[str]:
    """Boot, show each line of the console, and return them all."""
    lines = []
    with subprocess.Popen(  # noqa: S603
        command(system, project), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    ) as machine:
        timer = threading.Timer(seconds, machine.kill)
        timer.start()
        try:
            for line in _lines(machine):
                show(line)
                lines.append(line)
        finally:
            timer.cancel()
            machine.kill()
    return lines


def _lines(machine: subprocess.Popen[bytes]) -> Iterator[str]:
    assert machine.stdout is not None  # noqa: S101
    for line in machine.stdout:
        yield line.decode("utf-8", errors="replace").strip("\r\n")


def command(system: System, project: Path) -> Sequence[str]:
    """Return qemu's command line: no network, and no KVM, which fails on many virtual machines."""
    disks = [f"file={image},format=raw,if=virtio" for image in (system.image, project)]
    return [
        "qemu-system-x86_64",
        *("-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max"),
        *("-m", "2G", "-smp", "2", "-nic", "none", "-display", "none"),
        *("-serial", "stdio", "-monitor", "none", "-no-reboot", "-snapshot"),
        *("-kernel", str(system.kernel), "-initrd", str(system.initrd), "-append", _KERNEL),
        *(word for disk in disks for word in ("-drive", disk)),
    ]

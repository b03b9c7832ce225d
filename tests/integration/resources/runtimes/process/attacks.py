"""Attacks of a step that end it, or that change nothing: these return, and are called harmless."""

import contextlib
import ctypes
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

MB = 1024 * 1024
TOUCHED = b"x" * MB
HOME = Path("/tmp")
CHUNKS = 2000  # MB: more than any limit, and an end where there is none
PR_SET_DUMPABLE = 4
IPC_CREAT, SHM_MODE = 0o1000, 0o600
EXIT_THREAD = 93 if platform.machine() == "aarch64" else 60  # the number of the call
_LIBC = ctypes.CDLL(None, use_errno=True)
_fork = os.fork  # noqa: TID251 - the attacker's


def _forever() -> None:
    while True:
        signal.pause()


def _in_child(act: Callable[[], Any]) -> int:
    pid = _fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            act()
        os._exit(0)
    return pid


# --- processes and threads
def fork_bomb() -> None:
    """Fork in all children, too, and never give up."""
    while True:
        with contextlib.suppress(OSError):
            _fork()


def fork_until_refused() -> None:
    """Fork children that stay."""
    while True:
        if os.fork() == 0:  # noqa: TID251 - the attacker's
            _forever()


def program_bomb() -> None:
    """Start programs that stay."""
    kept = []
    while True:
        kept.append(subprocess.Popen(["/bin/sleep", "60"]))


def thread_bomb() -> None:
    """Start threads that stay."""
    while True:
        threading.Thread(target=_forever_asleep, daemon=True).start()


def _forever_asleep() -> None:
    while True:
        time.sleep(3600)


# --- RAM
def ram_of_one_process() -> None:
    """Allocate ordinary memory."""
    kept = []
    for _ in range(CHUNKS):
        kept.append(TOUCHED + b"")
        kept.append(bytearray(TOUCHED))  # type: ignore[arg-type]


def _allocate(megabytes: int) -> None:
    kept = [bytearray(TOUCHED) for _ in range(megabytes)]
    _forever()
    del kept


def ram_of_many_children() -> None:
    """Let each of many children use less than the limit."""
    _wait_for([_in_child(lambda: _allocate(24)) for _ in range(16)])


def ram_of_hidden_children() -> None:
    """Close the children to their guard, which counts them, before they allocate."""
    _LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    _wait_for([_in_child(lambda: _allocate(24)) for _ in range(16)])


def ram_shared_by_fork() -> None:
    """Allocate in children one after another, each of which then shares its pages with a copy of itself."""
    _wait_for([_once_told(_allocate_and_copy) for _ in range(10)])


def _allocate_and_copy(tell: Callable[[], Any]) -> None:
    kept = [bytearray(TOUCHED) for _ in range(36)]
    if _fork():
        tell()
    _forever()
    del kept


def ram_without_a_main_thread() -> None:
    """Allocate in processes whose first thread has ended, which look dead from outside."""
    _wait_for([_once_told(_allocate_beside) for _ in range(10)])


def _allocate_beside(tell: Callable[[], Any]) -> None:
    def allocate() -> None:
        kept = [bytearray(TOUCHED) for _ in range(36)]
        tell()
        _forever_asleep()
        del kept

    threading.Thread(target=allocate, daemon=True).start()
    _LIBC.syscall(EXIT_THREAD, 0)


def _once_told(act: Callable[[Callable[[], Any]], None]) -> int:
    """Start a child that does this; wait until it tells that it is done, or has ended."""
    reading, writing = os.pipe()
    pid = _in_child(lambda: act(lambda: os.write(writing, b"1")))
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    return pid


def _wait_for(children: list[int]) -> None:
    """Fail as soon as one of them was killed, whichever it is, as most programs would."""
    for _ in children:
        pid, status = os.wait()
        if status:
            raise RuntimeError(f"child {pid} ended with {status}")


def ram_shared() -> None:
    """Write to memory that children could share."""
    _fill(mmap.mmap(-1, CHUNKS * MB))


def ram_of_a_device() -> None:
    """Write to memory that belongs to no process."""
    with Path("/dev/zero").open("r+b") as zero:
        _fill(mmap.mmap(zero.fileno(), CHUNKS * MB))


def _fill(area: Any) -> None:
    for index in range(CHUNKS):
        area[index * MB : (index + 1) * MB] = TOUCHED


def ram_of_memfd() -> None:
    """Write to memory that no process maps."""
    descriptor = os.memfd_create("bomb")
    for _ in range(CHUNKS):
        os.write(descriptor, TOUCHED)


def ram_of_system_v() -> None:
    """Write to segments that stay without any process."""
    _LIBC.shmat.restype = ctypes.c_void_p
    for key in range(CHUNKS):
        segment = _LIBC.shmget(key + 1, MB, IPC_CREAT | SHM_MODE)
        if segment < 0:
            raise OSError(ctypes.get_errno(), "shmget")
        address = _LIBC.shmat(segment, None, 0)
        ctypes.memset(address, 1, MB)
        _LIBC.shmdt(ctypes.c_void_p(address))


def ram_of_files() -> None:
    """Write files that the limit of the disk allows."""
    disk_bytes()


def ram_of_sockets() -> None:
    """Send what nobody reads: the kernel keeps it."""
    _wait_for([_in_child(_hoard) for _ in range(20)])


def _hoard() -> None:
    kept: list[socket.socket] = []
    with contextlib.suppress(OSError):
        while True:
            kept += _full_pair()
    _forever()


def _full_pair() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair()
    for end in pair:
        end.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                end.send(TOUCHED[:65536])
    return pair


# --- disk
def disk_bytes() -> None:
    """Write one long file."""
    with (HOME / "long").open("wb", buffering=0) as file:
        for _ in range(CHUNKS):
            file.write(TOUCHED)


def disk_files() -> None:
    """Make empty files."""
    for number in count():
        (HOME / str(number)).touch()


def disk_folders() -> None:
    """Make folders in folders."""
    os.chdir(HOME)
    while True:
        Path("d" * 200).mkdir()
        os.chdir("d" * 200)


# --- ends of the runner
def leave() -> None:
    """Exit without a word."""
    os._exit(3)


def leave_as_if_well() -> None:
    """Exit as after a success."""
    os._exit(0)


def kill_itself() -> None:
    """Die by a signal."""
    os.kill(os.getpid(), signal.SIGKILL)


def crash() -> None:
    """Read at no address."""
    ctypes.string_at(0)


def stop_itself() -> None:
    """Stop, so that nobody answers."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _streams() -> list[int]:
    """Return the descriptors of all pipes but the step's own output: the stream to the worker is among them."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            if str(link.readlink()).startswith("pipe:") and int(link.name) not in (1, 2):
                found.append(int(link.name))
    return found


def _write_to_streams(data: bytes) -> None:
    for descriptor in _streams():
        with contextlib.suppress(OSError):  # one to read from
            os.write(descriptor, data)


def close_the_stream() -> None:
    """Close the way to the worker."""
    for descriptor in _streams():
        os.close(descriptor)
    _forever_asleep()


def replace_the_stream() -> None:
    """Put another file in place of the way to the worker."""
    with Path("/dev/null").open("r+b") as null:
        for descriptor in _streams():
            os.dup2(null.fileno(), descriptor)
    _forever_asleep()


def send_a_descriptor() -> None:
    """Send a connection whose end would take for ever, if the worker had to end it."""
    listening = socket.create_server(("127.0.0.1", 0))
    connection = socket.create_connection(listening.getsockname())
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10**6))
    connection.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while connection.send(bytes(65_536)):
            pass
    for descriptor in _streams():
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as stream:
            socket.send_fds(stream, [b"\0"], [connection.fileno()])
    _write_to_streams(os.urandom(1000))
    os._exit(0)


def write_garbage() -> None:
    """Write what is no frame."""
    _write_to_streams(os.urandom(1000))
    _forever_asleep()


def write_half_a_frame() -> None:
    """Announce a frame that never comes."""
    _write_to_streams(b"\x00\x00")
    _forever_asleep()


def burn_processor_time() -> None:
    """Use all processors that there are."""
    _in_child(_spin)
    _spin()


def _spin() -> None:
    while True:
        pass


def burn_processor_time_and_ignore_the_signal() -> None:
    """Use a processor, whatever it is told."""
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    _spin()


# --- harmless
def harmless_signals_to_the_guard() -> str:
    """Send every signal to process 1, which is also the parent."""
    for number in signal.valid_signals():
        with contextlib.suppress(OSError):
            os.kill(1, number)
        with contextlib.suppress(OSError):
            os.kill(os.getppid(), number)
    return "still here"


def harmless_storm_of_signals() -> str:
    """Wake process 1 without end."""
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.kill(1, signal.SIGCHLD)
    return "still here"


def harmless_signal_to_all() -> str:
    """Kill all processes that it may: its own children."""
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGSTOP)
        os.kill(-1, signal.SIGKILL)
    return "still here"


def harmless_daemon() -> int:
    """Leave a process without parent, session and output, which ends with the sandbox."""
    reading, writing = os.pipe()

    def daemonise() -> None:
        os.setsid()
        pid = _in_child(_forever)
        os.write(writing, str(pid).encode())

    os.waitpid(_in_child(daemonise), 0)
    return int(os.read(reading, 20))


def harmless_threads_that_never_end() -> str:
    """Leave threads that an interpreter waits for, which end with the sandbox."""
    for _ in range(8):
        threading.Thread(target=_forever_asleep).start()
    return "left"


def harmless_flood_of_output() -> str:
    """Print far more than is kept."""
    for number in range(20_000):
        sys.stdout.write(f"line {number} {'x' * 100}\n")
    for _ in range(20):
        os.write(1, b"y" * 65536)
    return "printed"


ATTACKS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (
        fork_bomb, fork_until_refused, program_bomb, thread_bomb, ram_of_one_process, ram_of_many_children,
        ram_of_hidden_children, ram_shared_by_fork, ram_without_a_main_thread,
        ram_shared, ram_of_a_device, ram_of_memfd, ram_of_system_v, ram_of_files, ram_of_sockets, disk_bytes,
        disk_files, disk_folders, leave, leave_as_if_well, kill_itself, crash, stop_itself, close_the_stream,
        replace_the_stream, send_a_descriptor, write_garbage, write_half_a_frame, burn_processor_time,
        burn_processor_time_and_ignore_the_signal,
        harmless_signals_to_the_guard, harmless_storm_of_signals, harmless_signal_to_all, harmless_daemon,
        harmless_threads_that_never_end, harmless_flood_of_output,
    )
}  # fmt: skip

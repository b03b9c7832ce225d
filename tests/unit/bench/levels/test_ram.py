"""The private RAM of runners."""

import os
import subprocess
import sys

import psutil

from bench.levels.ram import PrivateRam, is_sandbox, private_mb, runners_below

PROGRAM = """
import os, sys
reading, writing = os.pipe()
if os.fork() == 0:
    kept = b"x" * (8 << 20)
    os.write(writing, b"1")
    sys.stdin.read()
    os._exit(0)
os.read(reading, 1)
print(flush=True)
os.wait()
"""


def test_a_child_of_a_zygote_counts_with_what_it_wrote() -> None:
    command = [sys.executable, "-c", PROGRAM, "isolane.zygote"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as zygote:
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        zygote.stdout.readline()
        (runner,) = runners_below([os.getpid()])
        assert 8 < private_mb([runner]) < 16
        ram = PrivateRam([os.getpid()], sandboxed=False)
        ram.look()
        assert ram.mb is not None
        assert ram.mb > 8
        sandboxed = PrivateRam([os.getpid()], sandboxed=True)
        sandboxed.look()
        assert sandboxed.mb is None
        zygote.stdin.close()


def test_an_ordinary_process_is_no_sandbox() -> None:
    assert not is_sandbox(os.getpid())


def test_a_process_that_is_gone_has_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    gone = psutil.Process(process.pid)
    process.wait()
    assert private_mb([gone]) == 0

"""The C library of this process.

It is found once: a new one costs a class and a search for each function, and every process forked from a zygote would
copy the pages for that again.

Timing: the first call some tens of microseconds.
Model: any thread; the interpreter's lock is released during a call.
Guarantee: the same object always; `ctypes.get_errno` tells the error of the last call.
Failure: bubble, where a program cannot be searched for functions.
"""

import ctypes
import functools


@functools.cache
def c_library() -> ctypes.CDLL:
    """Return it."""
    return ctypes.CDLL(None, use_errno=True)

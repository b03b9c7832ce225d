"""The list of refused system calls, without compiling it."""

from itertools import chain

from resources.runtimes.seccomp import ABSENT, NUMBERS, REFUSED, RULES, UNCOUNTED, UNJUDGED

# Each is a known way out of a sandbox, or to its neighbours.
WAYS_OUT = {
    "add_key", "bpf", "chroot", "fsconfig", "fsmount", "fsopen", "fspick", "io_uring_enter", "io_uring_register",
    "io_uring_setup", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lsm_set_self_attr", "mount", "mount_setattr",
    "move_mount", "name_to_handle_at", "open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open",
    "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace", "request_key",
    "setns", "umount2", "unshare", "userfaultfd",
}  # fmt: skip
NEEDED = {"clone", "fork", "execve", "landlock_restrict_self", "prctl", "seccomp", "socket"}


def test_ways_out_are_refused_and_needed_calls_are_not() -> None:
    assert set(REFUSED) >= WAYS_OUT
    assert not NEEDED & set(REFUSED)
    assert ABSENT == ("clone3",)


def test_each_call_is_named_once() -> None:
    named = [*REFUSED, *ABSENT, *UNCOUNTED]
    assert len(named) == len(set(named))
    assert not {rule.call for rule in RULES} & set(named)


def test_numbers_are_those_of_refused_calls_and_below_the_unjudged_ones() -> None:
    assert set(NUMBERS) <= {*REFUSED, *UNCOUNTED}
    assert len(set(NUMBERS.values())) == len(NUMBERS)
    assert min(NUMBERS.values()) >= 424  # smaller ones differ between architectures
    assert max(NUMBERS.values()) < UNJUDGED.start


def test_a_rule_compares_within_the_arguments_of_a_call() -> None:
    assert {rule.argument for rule in RULES} <= set(range(6))
    assert {rule.operator for rule in RULES} == {"MASKED_EQ", "LT", "EQ", "GT", "NE"}
    assert all(value >= 0 for value in chain.from_iterable(rule.values for rule in RULES))

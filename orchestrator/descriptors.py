"""The limit of files and connections that this process may have open."""

import resource

MAX_DESCRIPTORS = 65_536


def raise_descriptors() -> int:
    """Raise the soft limit to the hard one, up to a maximum; return the new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most

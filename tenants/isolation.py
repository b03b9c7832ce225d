"""The isolation levels, from weakest to strictest. Pure."""

from django.db.models import TextChoices


class Isolation(TextChoices):
    """The place of a run's context."""

    SHARED = "shared"  # a long-lived child process, one run at a time; for trusted tenants
    PROCESS = "process"  # a fresh process in its own namespaces
    DOCKER = "docker"  # a container
    KUBERNETES = "kubernetes"  # a Job

    @property
    def strictness(self) -> int:
        """A number to compare levels by."""
        return list(Isolation).index(self)


def default_requirement(*, trusted: bool) -> Isolation:
    """Return the level that a new tenant requires unless another is said: trust is given for the sake of `shared`."""
    return Isolation.SHARED if trusted else Isolation.PROCESS

"""Celery as this platform uses it: messages are wake-ups on lanes, in workers, web and Flower alike.

Timing: import-time, definitions only.
Model: sync.
Guarantee: at-least-once; the row's owner sends a lost message again.
Failure: bubble.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.app.events import Events
from celery.events.dispatcher import EventDispatcher

from orchestrator.broker import LaneConnection


class LaneAMQP(AMQP):
    """Queues without exchanges: a lane is addressed by its name, so a deleted lane leaves no binding behind."""

    Connection = LaneConnection

    @staticmethod
    def autoexchange(_name: str) -> None:  # type: ignore[override]  # a hook that Celery documents as an attribute
        """Use the default exchange."""

    def TaskConsumer(self, *args: Any, **options: Any) -> Any:  # noqa: N802 - their name
        """Take messages without acknowledging them: they are wake-ups, and a lost one is sent again from the row.

        There is no prefetch limit either; a lane has at most one message for each run that is placed there.
        """
        return super().TaskConsumer(*args, **{**options, "no_ack": True})

    @cached_property
    def send_task_message(self) -> Callable[..., Any]:
        """Declare nothing while publishing: the worker that consumes a lane has declared it."""
        return partial(super().send_task_message, declare=())

    def as_task_v2(
        self,
        task_id: str,
        name: str,
        args: Any = None,
        kwargs: Any = None,
        *rest: Any,
        **options: Any,
    ) -> Any:
        """Show arguments in full: they are ids and names, so there is nothing to shorten."""
        shown = {"argsrepr": repr(tuple(args or ())), "kwargsrepr": repr(kwargs or {})}
        return super().as_task_v2(task_id, name, args, kwargs, *rest, **{**shown, **options})


class NoRetryDispatcher(EventDispatcher):
    """Sends a worker's events; Celery's own waits for a broker that is away, as long as it takes.

    Heartbeats are sent by the loop that notices a lost connection and stops a worker, so it must not block.
    """

    def send(self, type: str, *args: Any, **fields: Any) -> None:  # noqa: A002 - their name
        """Try once."""
        super().send(type, *args, **{**fields, "retry": False})


class LaneEvents(Events):
    """Events sent by NoRetryDispatcher."""

    dispatcher_cls = "orchestrator.lane_app:NoRetryDispatcher"


def lane_app(*, is_current: bool) -> Celery:
    """Return an application to configure; the current one sends signatures."""
    # Without the Django fixup, which closes the database connection around every task: the worker manages connections.
    return Celery("isolane", fixups=[], amqp=LaneAMQP, events=LaneEvents, set_as_current=is_current)

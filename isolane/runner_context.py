"""The execution context with the runner's part: one attempt of a step, called in this process.

The event loop lives until the context closes; then its tasks are ended in a helper thread. Output is checked before it
is kept.

Timing: returns when the node does; its deadline is the worker's concern.
Model: `def` nodes run in the calling thread, `async def` ones on the execution's own event loop.
Guarantee: parameters and output are checked; the attempt's own handles are disposed of, however it ends.
Failure: an exception of the node passes through unchanged; an output that cannot be kept is a StepError.
"""

import asyncio
import contextvars
import time
from typing import Any

from isolane.context import ExecutionContext, NodeContext
from isolane.handles import Emit
from isolane.node import Node
from isolane.protocol import MAX_OUTPUT, ProtocolError, Run, dump
from isolane.results import Code, StepError, StepResult


class RunnerContext(ExecutionContext):
    """An open context that calls nodes; it owns the event loop of its async steps."""

    _loop: asyncio.Runner | None = None

    def attempt(self, node: Node, run: Run, emit: Emit) -> StepResult:
        """Call the node that the frame names, and return its result if it returns."""
        parameters = node.checked(run.parameters)
        ctx = NodeContext(self, run, deadline=time.monotonic() + run.timeout_s, emit=emit)
        try:
            output = self._call(node, ctx, parameters)
        finally:
            self.handles.end(ctx.attempt_scope)
        variables = ctx.memory.changes
        check_kept(f"node {node.name} returned", output)
        if variables:
            check_kept(f"node {node.name} set variables with", variables)
        return StepResult.succeeded(
            step=run.step,
            attempt=run.attempt,
            output=None if ctx.question else output,
            variables=variables,
            pause_s=ctx.pause_s,
            question=ctx.question,
        )

    def close(self) -> tuple[str, ...]:
        """Close the context, then the event loop: only the main thread may restore its signals."""
        errors = super().close()
        loop, self._loop = self._loop, None
        if (
            loop is None or loop.get_loop().is_running()
        ):  # its tasks do not end, which `errors` reports
            return errors
        try:
            loop.close()
        except BaseException as error:  # noqa: BLE001 - tasks that steps left in it may raise anything
            errors += (f"{type(error).__name__} while the event loop was closed",)
        return errors

    def _call(self, node: Node, ctx: NodeContext, parameters: dict[str, Any]) -> Any:
        if not node.is_async:
            # A context variable that one step sets must not be visible to the next execution.
            return contextvars.copy_context().run(node.call, ctx, parameters)
        if self._loop is None:
            self._loop = asyncio.Runner()
            self.on_close(self._end_tasks)
        return self._loop.run(node.call(ctx, parameters))

    def _end_tasks(self) -> None:
        if self._loop is not None:
            self._loop.run(_end_tasks())


async def _end_tasks() -> None:
    """End the tasks that steps left in this event loop, however long that takes."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def check_kept(what: str, value: Any) -> None:
    """Refuse a value that the run cannot keep."""
    try:
        size = len(dump(value))
    except ProtocolError as error:
        raise StepError(Code.POLICY_VIOLATION, f"{what} what cannot be kept: {error}") from None
    if size > MAX_OUTPUT:
        message = f"{what} {size} bytes of JSON, over the limit of {MAX_OUTPUT}"
        raise StepError(Code.OUTPUT_TOO_LARGE, message)

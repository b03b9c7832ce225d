"""Attack of an author: publish, validate and submit the most expensive schemas, many at a time.

Timing: for the given seconds.
Model: async, one task per schema.
Guarantee: best-effort.
Failure: a request without an answer is counted, and the next one is sent.
"""

import asyncio
import itertools
from collections.abc import Sequence

from trials.siege.http import Answer, Call, NoAnswer, once
from trials.siege.plan import RENEWAL_SECONDS
from trials.siege.schemas import ExpensiveSchema
from trials.siege.tally import Tally

ANSWER_SECONDS = 60.0  # an attacker can wait
PUBLISH, VALIDATE, SUBMIT = "publish", "validate", "submit"
PATHS = {
    PUBLISH: "/api/v1/blueprints",
    VALIDATE: "/api/v1/blueprints/validate",
    SUBMIT: "/api/v1/executions",
}


async def send(port: int, key: str, schemas: Sequence[ExpensiveSchema], seconds: float) -> Tally:
    """Send every schema again and again, all at the same time."""
    tally = Tally()
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            for schema in schemas:
                group.create_task(_repeat(port, key, schema, tally))
    except TimeoutError:
        pass
    return tally


async def _repeat(port: int, key: str, schema: ExpensiveSchema, tally: Tally) -> None:
    published = False
    for turn in itertools.count():
        what = SUBMIT if published and turn % 3 else VALIDATE if turn % 2 else PUBLISH
        answer = await _one(port, key, schema, what, tally)
        if what == PUBLISH and answer:
            published = published or answer.status in {200, 201}
        if answer is None or answer.status >= 400:
            await asyncio.sleep(RENEWAL_SECONDS)


async def _one(
    port: int, key: str, schema: ExpensiveSchema, what: str, tally: Tally
) -> Answer | None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    headers = {
        "Host": "localhost",
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
    }
    body = schema.submission if what == SUBMIT else schema.source
    call = Call(method="POST", path=PATHS[what], headers=headers, body=body)
    tally.tries += 1
    answer = None
    try:
        answer = await once(port, call, ANSWER_SECONDS)
        got = str(answer.status)
    except NoAnswer as error:
        got = str(error)
    tally.note(what, got, loop.time() - began)
    return answer

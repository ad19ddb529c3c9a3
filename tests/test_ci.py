"""What CI and editors read: the SARIF log, lines for problem matchers, the page about them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import jsonschema
import msgspec
import pytest
import yaml

from gradscope.model.observations import Location
from gradscope.model.report import Report
from gradscope.render import Options
from gradscope.render.answers.annotations import gcc, github, sarif
from tests.looking import Session
from tests.reports import diagnosed, hostile, small

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
SICK = """
import torch
layers = [torch.sqrt]
w = torch.zeros(3, requires_grad=True)
v = torch.ones(3, requires_grad=True)
optimizer = torch.optim.SGD([w, v], 0.1)
loss = layers[0](w).sum() * {"a": 1}["a"]
loss.backward()
"""


@cache
def _schema() -> Any:
    text = (ROOT / "tests" / "sarif" / "sarif-2.1.0-rtm.5.json").read_text("utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


def _run(text: str) -> dict[str, Any]:
    """The one run of a log that keeps to the schema, and whose references lead somewhere."""
    log = json.loads(text)
    errors = [error.message for error in _schema().iter_errors(log)]
    assert not errors
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result.get("locations", ()):
            artifact = location["physicalLocation"]["artifactLocation"]
            assert urlsplit(artifact["uri"]).scheme == ("" if "uriBaseId" in artifact else "file")
            assert artifact.get("uriBaseId", "%SRCROOT%") in run["originalUriBaseIds"]
    return dict(run)


def _located(report: Report, file: str, line: int = 3) -> Report:
    """The same report, whose first finding stands in that file."""
    first = msgspec.structs.replace(report.findings[0], location=Location(file, line, "f(x)"))
    return msgspec.structs.replace(report, findings=(first, *report.findings[1:]))


def _results(text: str) -> list[dict[str, Any]]:
    return list(_run(text)["results"])


def test_a_log_of_a_run(session: Session) -> None:
    done = session.cli("doctor", str(session.write(SICK)), "--format", "sarif")
    run = _run(done.out)
    assert done.status == 1
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"{session.folder.as_uri()}/"}}
    first, second = run["results"]
    assert (first["ruleId"], first["level"]) == ("GS102", "error")
    assert first["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "program.py", "uriBaseId": "%SRCROOT%"},
                "region": {"startLine": 6, "snippet": {"text": "layers[0](w)"}},
            }
        }
    ]
    # What looks like a link or an argument in what the program says is neither.
    assert "`layers[0\\](w)`" in first["message"]["text"]
    assert (second["ruleId"], second["level"]) == ("GS301", "warning")
    rule = run["tool"]["driver"]["rules"][0]
    page = " ".join(rule["help"]["markdown"].split())
    assert page.startswith(rule["shortDescription"]["text"])
    assert "## When to ignore it" in rule["help"]["text"]
    assert run["invocations"][0]["executionSuccessful"]


def test_nothing_found_is_a_log_without_results() -> None:
    assert _results(sarif(small(), Options())) == []


def test_a_log_of_hostile_text_keeps_to_the_schema() -> None:
    report = msgspec.structs.replace(hostile(), findings=diagnosed().findings)
    for file in ("x\x1b[2J\n::error::.py", "ſ/../..", "/a b%20#?.py", "file:///etc", "\udcff.py"):
        _run(sarif(_located(report, file), Options()))


@pytest.mark.parametrize(
    ("file", "root", "uri"),
    [
        ("a dir/ü.py", "", "a dir/ü.py"),
        ("/work place/pkg/m.py", "/work place", "pkg/m.py"),
        ("/elsewhere/m.py", "/work place", "file:///elsewhere/m.py"),
    ],
)
def test_paths_count_from_the_checkout(
    file: str, root: str, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", root)
    (first, *_) = _results(sarif(_located(diagnosed(), file), Options()))
    found = first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote(found) == uri
    assert urlsplit(found).path.isascii()
    (line, *_) = github(_located(diagnosed(), file), Options()).splitlines()
    assert line.startswith(f"::error file={uri.removeprefix('file://')},line=3,")


def test_a_finding_is_known_again_where_lines_were_added_above() -> None:
    def prints(report: Report) -> list[str]:
        found = (result["partialFingerprints"] for result in _results(sarif(report, Options())))
        return [text for one in found for text in one.values()]

    report = diagnosed()
    known = prints(_located(report, "a.py", 3))
    assert prints(_located(report, "a.py", 30)) == known
    assert prints(_located(report, "b.py", 3))[0] != known[0]
    # Two of one kind at one place are two.
    twice = msgspec.structs.replace(report, findings=report.findings[:1] * 2)
    assert len(set(prints(twice))) == 2


def test_what_has_no_line_stands_at_the_head_of_the_program(session: Session) -> None:
    script = str(session.write("import torch\n"))
    report = diagnosed()
    meta = msgspec.structs.replace(report.meta, target=f"{script}::main -- --lr 1")
    report = msgspec.structs.replace(report, meta=meta)
    (_, unused, _) = _results(sarif(report, Options()))
    place = unused["locations"][0]["physicalLocation"]
    assert (place["region"], unquote(place["artifactLocation"]["uri"])) == (
        {"startLine": 1},
        "program.py",
    )
    assert gcc(report, Options()).splitlines()[1].startswith("program.py:1: warning: naïve")


# ---------------------------------------------------------------- the page about it


def _fenced(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_problem_matcher_reads_what_is_written(session: Session) -> None:
    (text,) = _fenced("json")
    (task,) = json.loads(text)["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    name = "odd: name [1].py"
    session.write(SICK, name)
    words = [name if word == "${relativeFile}" else word for word in task["args"]]
    done = session.cli(*words)
    read = [re.fullmatch(pattern["regexp"], line) for line in done.out.splitlines()]
    assert [
        (one[pattern["file"]], one[pattern["line"]], one[pattern["severity"]], one[pattern["code"]])
        for one in read
        if one is not None
    ] == [(name, "6", "error", "GS102"), (name, "4", "warning", "GS301")]
    assert len(read) == 2
    assert read[0] is not None
    assert read[0][pattern["message"]].startswith("Backward of `layers[0](w)` turns")


def test_the_workflow_runs_what_there_is(session: Session) -> None:
    workflow, annotations = map(yaml.safe_load, _fenced("yaml"))
    steps = [*workflow["jobs"]["doctor"]["steps"], *annotations]
    shell = [step["run"] for step in steps if "run" in step]
    session.write(SICK, "train.py")
    for line in (one for one in shell if one.startswith("gradscope ")):
        words, _, target = line.removeprefix("gradscope ").partition(" > ")
        done = session.cli(*words.split())
        assert (done.status, done.err) == (1, "")
        if target:
            upload = next(step for step in steps if "upload" in step.get("uses", ""))
            assert upload["with"]["sarif_file"] == target
            assert len(_results(done.out)) == 2
    assert len(shell) == 3

"""Whatever happens to a run or is done by the program, it ends as python would, and no file is
broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forkserver
from tests.conftest import ROOT
from tests.fuzz.alike import alike
from tests.fuzz.faults import FAULTS
from tests.fuzz.files import in_turn
from tests.fuzz.process import environment, ran
from tests.fuzz.trial import DOCTOR
from tests.odd_programs import HEAD, ODD, TAIL

ASKED = {name: (text, (("backward",), ("memory",), DOCTOR)) for name, text in ODD.items()}

test_an_odd_program_does_what_it_does_alone = alike(in_turn(ASKED), ASKED)


@pytest.fixture(scope="module")
def problems() -> dict[str, list[str]]:
    """What went wrong under each fault."""
    command = [*forkserver.module("tests.fuzz.faults"), "--moments", "2"]
    done = ran(command, ROOT, environment(), limit=None)
    assert done.stdout, done.stderr
    answer: dict[str, list[str]] = json.loads(done.stdout)
    return answer


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_survives(fault: str, problems: dict[str, list[str]]) -> None:
    assert not problems[fault], "\n".join(problems[fault])


@pytest.mark.long
@pytest.mark.parametrize(
    ("redirection", "status", "out", "err"),
    [
        ("2>&-", 0, "end [5.0, 5.0, 5.0]\n", ""),
        (
            ">&-",
            2,
            "",
            "gradscope: cannot write to stdout: it is closed\ngradscope: name a file: -o FILE\n",
        ),
        ("| head -c 5", 0, "end [", ""),
        ("> /dev/full", 120, "", "No space left on device"),
    ],
)
def test_streams_that_are_closed(
    redirection: str, status: int, out: str, err: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(HEAD + TAIL)
    # No fork: its stdout has no buffer, so that a `print` of the program is several writes, of
    # which the last may find that `head` has gone, which is then the program's own failure.
    command = f"'{sys.executable}' -m gradscope backward program.py --run-on {redirection}"
    done = _shell(f"{command}; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert done.returncode == status
    assert done.stdout.startswith(out) and err in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("way", ["os.close(2)", "sys.stderr.close()", "sys.stderr = None"])
def test_an_error_that_nobody_can_hear_has_its_status(way: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"{HEAD}{way}\n{TAIL}")
    command = f"{forkserver.gradscope()} backward --call 7 --run-on -q program.py"
    done = _shell(command, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "end [5.0, 5.0, 5.0]\n", "")


@pytest.mark.parametrize(
    "place",
    [
        *("env -u HOME", "env HOME=/dev/null", "env HOME=/nonexistent"),
        "mkdir gone && cd gone && rmdir ../gone &&",  # that it is gone is no fault of the program
    ],
)
def test_no_home_and_no_folder_is_needed(place: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("x = 3\n")
    done = _shell(f"{place} '{sys.executable}' -m gradscope trace {path} -q", tmp_path)
    # Python itself is content, and so are we: the program made no graph.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder that nobody can write to")
def test_no_folder_is_needed_that_can_be_written_to(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + TAIL)
    done = _shell(f"cd /proc && {forkserver.gradscope()} memory {program} -q", tmp_path)
    assert done.returncode == 0 and done.stdout, done.stderr


def _shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return ran(["bash", "-c", command], folder, environment(), XDG_CACHE_HOME="")

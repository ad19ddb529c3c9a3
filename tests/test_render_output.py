"""Writing results: whole or not at all, never over something by accident."""

from __future__ import annotations

import gzip
import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from gradscope.errors import OutputError
from gradscope.render.output import check_writable, write

no_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_text_bytes_and_compressed(tmp_path: Path) -> None:
    write(str(tmp_path / "text"), "größe ‖g‖")
    assert (tmp_path / "text").read_text("utf-8") == "größe ‖g‖"
    write(str(tmp_path / "bytes"), b"\x00\xff")
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"
    write(str(tmp_path / "x.gz"), b"content")
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == b"content"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bytes", "text", "x.gz"]


def test_a_replaced_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    write(str(path), "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write(str(tmp_path / "fresh"), "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(str(tmp_path / "link"), "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write(os.devnull, "gone")
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("function", [check_writable, lambda path: write(path, "x")])
def test_places_that_cannot_be_written(function: object, tmp_path: Path) -> None:
    assert callable(function)
    (tmp_path / "file").write_text("")
    places = {
        tmp_path: "is a directory",
        tmp_path / "missing" / "x.svg": "there is no folder",
        tmp_path / "file" / "x.svg": "there is no folder",
        tmp_path / "nul\0byte": "cannot write",
        tmp_path / ("long" * 100): "cannot write",
    }
    for place, expected in places.items():
        with pytest.raises(OutputError, match=expected) as caught:
            function(str(place))
        assert "\n" not in caught.value.what and caught.value.hint


@no_root
def test_read_only_places(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o400)
    with pytest.raises(OutputError, match="write-protected"):
        check_writable(str(tmp_path / "file"))
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="read-only"):
        check_writable(str(tmp_path / "new"))
    tmp_path.chmod(0o700)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_an_error() -> None:
    with pytest.raises(OutputError, match="No space left"):
        write("/dev/full", "x" * 100_000)


def test_a_failure_half_way_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("earlier")
    code = (
        "import resource, signal, sys\n"
        "from gradscope.errors import OutputError\n"
        "from gradscope.render.output import write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write(sys.argv[1], 'x' * 100_000)\n"
        "except OutputError as error: print(error.what)\n"
    )
    done = python(code, str(path))
    assert "File too large" in done.stdout
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("flags", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_reader_that_goes_away_is_no_error(flags: list[str]) -> None:
    code = (
        "import sys\n"
        "from gradscope.render.output import write\n"
        "sys.exit(0 if write('-', 'line\\n' * 1_000_000) else 9)\n"
    )
    with subprocess.Popen(
        [sys.executable, *flags, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 9


def test_all_of_a_long_output_arrives_also_unbuffered() -> None:
    code = "from gradscope.render.output import write\nwrite('-', 'x' * 1_000_000)"
    done = subprocess.run([sys.executable, "-u", "-c", code], capture_output=True, check=True)
    assert len(done.stdout) == 1_000_000


class _Redirected:
    """The stdout of VS Code's debugger: what is written to its buffer is not counted."""

    encoding = "ascii"

    def __init__(self) -> None:
        self.printed: list[str] = []
        self.taken: list[bytes] = []
        self.buffer = SimpleNamespace(write=self.taken.append)

    def write(self, text: str) -> None:
        self.printed.append(text)

    def flush(self) -> None:
        pass


def test_what_stands_in_for_stdout_is_printed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = _Redirected()
    monkeypatch.setattr(sys, "stdout", stream)
    assert write("-", "größe\n")
    assert (stream.printed, stream.taken) == (["gr\\xf6\\xdfe\n"], [])
    assert write("-", b"\x89PNG")
    assert stream.taken == [b"\x89PNG"]


def test_stdout_takes_bytes_and_what_its_encoding_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    code = (
        "import sys\nfrom gradscope.render.output import write\nprint('before')\n"
        "write('-', 'größe\\n')\nwrite('-', b'bytes\\n')\n"
    )
    assert python(code).stdout == "before\ngr\\xf6\\xdfe\nbytes\n"

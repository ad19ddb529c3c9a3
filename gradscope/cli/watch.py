"""A program whose training is watched, and the log of one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gradscope import doing, render
from gradscope.cli import folder, terminal
from gradscope.cli.given import Given, Result
from gradscope.cli.output import Output, on_stdout
from gradscope.cli.running import prepared, tell_unused
from gradscope.cli.terminal import say, tell_error
from gradscope.errors import CaptureError, GradscopeError, OutputError
from gradscope.formats import ANSWERS
from gradscope.handlers import collector_paused
from gradscope.model.history import SUFFIXES, History, load
from gradscope.model.rows import LogHead, Row
from gradscope.ranks import Job
from gradscope.render.answers import training
from gradscope.render.output import STDOUT
from gradscope.running.session import code_namespace, no_torch
from gradscope.target import Ending, OtherProcesses, Program
from gradscope.watching.sinks import Log
from gradscope.watching.turns import USUAL
from gradscope.words import VERSION

_BY_HAND = 'watch a model yourself: with gradscope.watch(model, to="run.jsonl"): ...'


def run_watch(options: Given) -> Result:
    """The whole of ``watch``.

    Raises:
        GradscopeError: before the program ran.
    """
    job = Job.of()
    # One text and one file, whatever the number of processes.
    is_first = job is None or not job.rank
    is_quiet = options.quiet or not is_first
    path = options.output if is_first else None
    if path is not None and not path.endswith(SUFFIXES):
        raise OutputError(
            f"-o {path}: the rows of a training are lines of JSON",
            "name it run.jsonl; gradscope show run.jsonl -o run.html makes a page of it",
        )
    render.output.check_writable(path or STDOUT)
    notes = [*options.notes]
    program = prepared(options, notes.append)
    target = program.target
    for note in notes if not is_quiet else ():
        say(note)
    log = None if path is None else Log(Path(path), LogHead(VERSION, options.every or USUAL, None))
    with ExitStack() as stack:
        stack.enter_context(folder.remembered(target, is_first))
        is_paced = stack.enter_context(terminal.shown(is_quiet))
        tell = doing.begin if is_paced else say
        history = History(title=path or target.describe())
        takers: list[Callable[[Row], None]] = [history.put]
        if not is_quiet:
            takers.append(lambda row: tell(training.sentence(row)))
        if log is not None:
            stack.callback(log.close)
            takers.insert(1, log.put)
        others = OtherProcesses()
        rank = 0 if job is None else job.rank
        ending, has_calls = _watched(program, options, takers, rank)
    ending.show()
    if rank or others.is_this_one:
        # What is to be said, rank 0 says, or the parent of this child.
        return Result(ending=ending)
    return _conclude(ending, history, options, _reason(has_calls, others))


def _watched(
    program: Program, options: Given, takers: Sequence[Callable[[Row], None]], rank: int
) -> tuple[Ending, bool | None]:
    """Run the program; whether it made backward calls, or None where it did without torch."""
    watches: list[Any] = []
    log = None if options.output is None else Path(options.output).absolute()
    told = f"rank {rank}: " if rank else ""

    def tell(line: str) -> None:
        say(told + line)

    def take(row: Row) -> None:
        for one in takers:
            one(row)

    @collector_paused()
    def on_torch() -> None:
        # Not imported above: this room imports torch, and is needed once the program has.
        room = importlib.import_module("gradscope.watching.program")
        how = options.every, take, tell, options.keep, log, rank
        watch = room.ProgramWatch(*how, by_term=options.by == "term")
        watches.append(watch)
        watches[0].start()

    try:
        doing.begin("running the program")
        ending = program.run(before=code_namespace(program.target), on_torch=on_torch)
    finally:
        for watch in watches:
            watch.stop()
    return ending, watches[0].has_calls if watches else None


def _reason(has_calls: bool | None, others: OtherProcesses) -> GradscopeError:
    if has_calls is None:
        return no_torch("nothing was watched")
    if has_calls:
        return CaptureError("nothing was watched, for the reason that is said above", _BY_HAND)
    if others.have_run:
        what = "nothing was watched: what the program did in its child processes is not seen"
        return CaptureError(what, _BY_HAND)
    what = "nothing was watched: no backward call brought a gradient to what an optimizer holds"
    return CaptureError(what, f"where the program has no torch.optim.Optimizer, {_BY_HAND}")


def _conclude(ending: Ending, history: History, options: Given, reason: GradscopeError) -> Result:
    if not history.rows:
        if ending.exception is None:  # which would have said what is wrong
            tell_error(reason)
        return Result(ending=ending)
    try:
        render.output.write(STDOUT, training.render(history, on_stdout(options)))
    except GradscopeError as error:
        tell_error(error)
        return Result(0 if ending.status else error.status, ending)
    if options.output is not None and not options.quiet:
        say(f"wrote {options.output}; gradscope show {options.output} -o run.html draws it")
    return Result(ending=ending)


def show_log(given: Given) -> Result:
    """Draw the log of a training.

    Raises:
        GradscopeError: it cannot be read, or not drawn in the format that was asked for.
    """
    path, place = given.file, Output.of(given, "watch")
    if place.format not in ANSWERS["watch"].values():
        raise OutputError(
            f"{path} is the log of a training, which is shown as text or html, not {place.format}",
            "leave out --format and -o, or name a page: -o run.html",
        )
    with terminal.shown(place.quiet):
        doing.begin("reading the file")
        place.write(load(path, given.max_size))
    tell_unused(path, place.remark, is_log=True)
    return Result()

"""One model through six commands, each answer beside what plain torch says."""

from __future__ import annotations

from collections import Counter

from gradscope.model.report import Report
from tests.bare import Plain
from tests.beside import answered, comparable, same_grads, same_graph_and_flow
from tests.looking import Session
from tests.models.catalogue import LATEST, Model, leaves

WRONG = {"quantisation-aware training": "rounding counts as the identity"}
"""Models with a derivative that is not that of forward, and why."""


def examined(model: Model, session: Session) -> Counter[str]:
    """Hold every answer to what plain torch says, and count what was compared."""
    return _Examined(model, session, model.run()).all()


class _Examined:
    def __init__(self, model: Model, session: Session, expected: Plain) -> None:
        self.model, self.session, self.expected = model, session, expected
        self.program = str(session.write(model.program))
        self.counts: Counter[str] = Counter()

    def all(self) -> Counter[str]:
        self.counts["models"] += 1
        graph = comparable(self.backward())
        self.counts["nodes"] += len(self.expected.nodes)
        self.counts["edges"] += len(self.expected.edges)
        self.counts["leaves"] += len(self.expected.leaves)
        for command in ("trace", "explain", "memory"):
            report = self.answer(command)
            assert comparable(report) == graph, command
            if command == "memory":
                self.memory(report)
        self.check()
        self.doctor()
        return self.counts

    def answer(self, command: str, *options: str, status: int = 0) -> Report:
        LATEST.clear()
        return answered(self.session, command, *options, self.program, status=status)

    def backward(self) -> Report:
        report = self.answer("backward", "--run-on", "--values")
        self.same_grads()
        same_graph_and_flow(report, self.expected)
        return report

    def same_grads(self) -> None:
        (loss,) = LATEST
        same_grads(leaves(loss), self.expected)

    def memory(self, report: Report) -> None:
        """The bytes are those that saved-tensor hooks see, where no hook of the model hides any."""
        memory = report.memory
        assert memory is not None
        if not memory.hidden:
            counted = memory.total("activation", "parameter", "buffer", "input")
            assert counted == self.model.bytes_kept()
            self.counts["graphs whose bytes were seen"] += 1

    def check(self) -> None:
        """No derivative is called wrong, but where it is meant to be."""
        is_wrong = self.model.name in WRONG
        checks = self.answer("check", status=int(is_wrong)).checks
        assert checks is not None and checks.is_wrong == is_wrong
        for call in checks.calls:
            self.counts[f"calls {call.verdict}"] += 1

    def doctor(self) -> None:
        """It has seen the call, and left ``.grad`` as it is."""
        report = self.answer("doctor", status=1)
        self.same_grads()
        seen = report.observations
        assert seen is not None and seen.watched
        assert not any("could not" in note or "not every" in note for note in report.notes)
        assert not any(one.rule == "GS410" for one in report.findings)
        for finding in report.findings:
            self.counts[f"findings {finding.rule}"] += 1

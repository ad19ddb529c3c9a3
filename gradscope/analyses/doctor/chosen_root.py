"""The tensor that ``--root`` names, examined instead of the program's backward calls."""

from __future__ import annotations

from gradscope.analyses.doctor.call_selector import result_case
from gradscope.analyses.doctor.captured_call import CapturedCall
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.errors import RootError
from gradscope.graphing.roots import Unusable, named_root, unknown_root
from gradscope.recording.names import Scopes


class ChosenRoot:
    """Waits for the tensor; ``case`` is what there is to report of its graph, once it was there.

    Args:
        text: the expression.
        listener: what was seen of the calls of the program.
    """

    def __init__(self, text: str, listener: DoctorListener) -> None:
        self.case: CapturedCall | None = None
        self._text = text
        self._listener = listener
        self._names: dict[str, None] = {}
        self._unusable: Unusable | None = None

    def look(self, scopes: Scopes, when: str) -> None:
        """Examine it if it is there now.

        Raises:
            RootError: the expression is wrong, or gives more than one number.
        """
        try:
            root = named_root(self._text, scopes, self._listener.recorder)
        except Unusable as error:  # `loss = 0.0` before a loop: what it is to be may come
            self._unusable = error
            return
        self._names.update(dict.fromkeys(scopes.variable_names()))
        if root is None:
            return
        if root.numel() != 1:
            inner = self._text if self._text.isidentifier() else f"({self._text})"
            raise RootError(
                f"--root {self._text} has {root.numel():,} elements, and the doctor starts from "
                "one number",
                f"name one, such as --root '{inner}.sum()'",
            )
        note = f"the doctor examined --root {self._text} at {when}"
        self.case = result_case(self._listener, scopes, root, note)

    def at_end(self, scopes: Scopes, error: BaseException | None) -> CapturedCall:
        """What was found, at the latest where the program has ended.

        Raises:
            RootError: it never was there.
        """
        if self.case is None:
            ended = "" if error is None else f", with {type(error).__name__}"
            self.look(scopes, f"the end of the program{ended}")
        if self.case is None:
            raise self._unusable or unknown_root(self._text, self._names)
        return self.case

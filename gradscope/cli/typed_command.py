"""Commands whose options arrive in typed objects, not in a dict."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, signature
from typing import Any, get_type_hints

import click


class TypedCommand(click.Command):
    """A command whose function takes dataclasses, each made of the options that its fields name.

    An option goes into every one that has a field of its name, or to a parameter of that name. What
    does not fit together shows when the command is defined, so that no user can meet it.

    Raises:
        TypeError: an option goes nowhere, or no option gives what the function needs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hints = get_type_hints(self.callback)
        # Before the / stands what click.pass_obj gives.
        self._kinds: dict[str, type] = {
            name: hints[name]
            for name, parameter in signature(self.callback or self).parameters.items()
            if parameter.kind is not Parameter.POSITIONAL_ONLY
        }
        given = {option.name for option in self.params}
        taken, needed = set[str | None](), set[str | None]()
        for name, kind in self._kinds.items():
            needs = _fields(kind) if is_dataclass(kind) else {name: True}
            taken |= needs.keys()
            needed |= {one for one, is_needed in needs.items() if is_needed}
        if given - taken or needed - given:
            raise TypeError(
                f"{self.name}: nothing takes {given - taken}, no option gives {needed - given}"
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function with what the options say."""
        options = ctx.params
        ctx.params = {
            name: kind(**{one: options[one] for one in _fields(kind) if one in options})
            if is_dataclass(kind)
            else options[name]
            for name, kind in self._kinds.items()
        }
        return super().invoke(ctx)


def _fields(kind: Any) -> dict[str, bool]:
    """The fields of a dataclass, and whether it cannot be made without."""
    return {
        one.name: one.default is MISSING and one.default_factory is MISSING for one in fields(kind)
    }


class TypedGroup(click.Group):
    """Typed commands."""

    command_class = TypedCommand

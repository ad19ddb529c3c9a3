"""Differences in which all that has history is taken from itself."""

from __future__ import annotations

import pytest

from tests.looking import Session

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
net, last = nn.Linear(4, 3), nn.Linear(3, 1)
x, c = torch.randn(8, 4), torch.randn(8, 3)
h = net(x)
{body}
"""

OWN = "last(h).square().mean()"
TOLD: dict[str, tuple[str, str] | None] = {
    # A term of the loss hangs on it alone.
    f"(F.mse_loss(h - (h + c), c) + {OWN}).backward()": ("warning", "h - (h + c)"),
    f"(F.mse_loss(h + c - h, c) + {OWN}).backward()": ("warning", "h + c - h"),
    f"(F.mse_loss(h - (c - (-h)), c) + {OWN}).backward()": ("warning", "h - (c - (-h))"),
    f"g = torch.sigmoid(h); (F.mse_loss((g > 0.5) + g - g, c) + {OWN}).backward()": (
        "warning",
        "(g > 0.5) + g - g",
    ),
    f"r = h - (h + c); s = r - (r + c); (s.abs().sum() + {OWN}).backward()": (
        "warning",
        "r - (r + c)",
    ),
    # It gives a value beside what learns.
    "n = h + c; F.mse_loss(net(2 * x), n - h).backward()": ("information", "n - h"),
    # Something is left of it.
    f"(F.mse_loss(h - (h + c).detach(), c) + {OWN}).backward()": None,
    f"(F.mse_loss(h - (h + c) * 1.5, c) + {OWN}).backward()": None,
    f"(F.mse_loss(h - torch.add(c, h, alpha=2), c) + {OWN}).backward()": None,
    f"(F.mse_loss(h + net(c @ net.weight) - h, c) + {OWN}).backward()": None,
    f"(F.mse_loss(h - (h[:1] + c), c) + {OWN}).backward()": None,
    f"(F.mse_loss(h - (-h + c), c) + {OWN}).backward()": None,
    f"(F.mse_loss(h - h, c) + {OWN}).backward()": None,
}


@pytest.mark.parametrize("body", TOLD)
def test_what_is_left_of_a_difference(body: str, session: Session) -> None:
    text = HEAD.format(body=body.replace("; ", "\n"))
    report = session.look(text, "-q", command="doctor")
    found = [one for one in report.findings if one.rule == "GS318"]
    told = [(one.severity, one.location.expression if one.location else "") for one in found]
    wanted = TOLD[body]
    assert told[:1] == ([] if wanted is None else [wanted])

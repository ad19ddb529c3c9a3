"""What a page may do: nothing but show itself.

If a text should ever get past the escaping, the browser still runs, loads and sends nothing of it.
"""

from __future__ import annotations

import base64
import hashlib

_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'"


def policy(script: str = "") -> str:
    """The Content-Security-Policy of a page, for a ``<meta>`` element.

    Args:
        script: the text of the one script that may run, known to the browser by its hash.
    """
    if not script:
        return _NOTHING
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{_NOTHING}; script-src 'sha256-{digest}'"

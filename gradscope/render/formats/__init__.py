"""One module a format, named like ``--format`` names it, each with ``render(report, options)``."""

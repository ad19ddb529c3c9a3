"""How text, numbers, places and tables are written, the same in every format and answer."""

import random

# Rich draws a number when it is imported, and by now the program may have seeded the generator.
_state = random.getstate()
import rich.style  # noqa: E402, F401

random.setstate(_state)

"""One wing a command: ``doctor``, ``check``, ``explain``, ``memory``, ``diff``.

Each listens or looks, and gives plain data; the words are made in :mod:`gradscope.rules` and
:mod:`gradscope.render.answers`.  No wing knows another.  ``diff`` compares two saved reports, so it
has no torch.
"""

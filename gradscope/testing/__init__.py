"""gradscope in pytest: the fixture ``gradscope``, and ``--gradscope`` for every test.

pytest finds :mod:`gradscope.testing.plugin` by its entry point.  Importing that imports neither
torch nor a renderer, because it is loaded for every run of pytest where gradscope is installed.
"""

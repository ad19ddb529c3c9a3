"""The fuzzer: random programs, each run under python and under every command of gradscope.

``python -m tests.fuzz`` (``make fuzz``) runs it for a while; ``test_fuzz.py`` runs a fixed number
of programs.  See ``docs/fuzzing.md``.
"""

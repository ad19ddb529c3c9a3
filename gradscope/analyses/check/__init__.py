"""Checking derivatives: a tape of the program's calls, run again in float64, and finite differences
of each call and of the whole program."""

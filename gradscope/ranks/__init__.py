"""The ranks of one job: they tell one another what they saw, and stop together.

Each rank of a program that runs under ``torchrun`` takes its own look.  What it saw goes, small and
compressed, into the key-value store that the process group keeps anyway; one rank collects it.
Nothing here is a collective: a rank that is dead or late is waited for a little, and then left out,
and no rank that lives ever hangs for one that does not.

Knows torch's store and nothing else of torch; must not know how a look is taken or drawn.
"""

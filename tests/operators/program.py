"""The program that every command is given: one call of an operator, and its backward call."""

import sys

import torch

from tests.operators.database import Case, gradients

made = Case.of(sys.argv[1:]).make()
input, args, kwargs = made.input, made.args, made.kwargs
out = made.call()
roots = made.roots(out)
torch.autograd.backward(roots, gradients(roots))

"""GS307 not-in-optimizer

A parameter gets gradients, but no optimizer holds it.

## How it is recognised

An optimizer holds parameters of modules, but not this one, and backward reached it. That is
information, for it may be meant. It is a warning where something speaks against that:

- layers in a plain list or dict (the finding is where the constructor of the module that keeps
the list makes them), tensors that a module keeps as plain attributes, an `nn.Parameter` that
belongs to no module;
- it was made after the optimizers (or all that they hold is of this sort, and it was read from
a file, or converted), and has the shape (or the name and the number of dimensions) of a
parameter that an optimizer holds, that nothing has ever used, and that no module and no
variable holds any more: it took that one's place, and `GS301` does not tell of that one;
- it was made after all optimizers, and the program does not change it by hand;
- the optimizer holds parameters that are no longer used;
- all that the optimizers hold was cut off, in one function, from tensors of the same shapes;
forward uses those and no call these, and three backward calls have seen nothing change them;
- it was frozen when an optimizer was made, and `requires_grad` was switched on later;
- an optimizer is given other parameters twice;
- two optimizers, made by different lines, hold the same parameters, and of this module none is
held;
- it is a parameter of the module that makes the loss, or of a layer inside of that; not of a
network, that is of more than layers that project and views;
- the optimizer holds an earlier member of the same list with a parameter of the same shape (the
last members alone are often meant);
- the optimizer holds another parameter of the same module, and all parameters of most modules
that have parameters of the same names (the biases alone are often meant);
- all that is left out are at most a fifth of the parameters, and of their elements, and the
layer lies between layers that the optimizer holds (the last layers alone, or small ones put
between frozen ones, are often meant);
- all that is left out are at most a fifth of the parameters, and one weighs what comes from
those that the optimizer holds (or is compared with it by `cdist`), with no layer after it: a
head with weights of its own before the loss. Not where the program has copied numbers into it,
has put it in eval mode and not the rest, or gives it other data as well, as it does with a
network that is there for a perceptual loss.
- it is a parameter of a whole module beside the one that the optimizer holds, which is given
what that makes, or gives it what it makes; initialised at random by the program, never loaded,
put in eval mode or changed by hand. A part of one module may be left as it is on purpose, and
what is given other data as well may be there for a loss.

Of these, the finding is at the line that makes the optimizer, and `seen` has the line of the
layer. Where the parameter was made later, and a function makes and returns the optimizer, it is
at the line that calls that function. What is in a plain list, or belongs to no module, is told
where it is made.

A model that a copy or a new model replaces in the middle of a training is told at the line that
makes that: twice at least an optimizer that has used gradients before steps and finds no new
one, while parameters that were made after all optimizers, and that the program does not change
by hand, have one.

Members of one list or dict are one finding, and so are parameters that the same line makes.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
-        self.rest = [nn.Linear(4, 4)]
+        self.rest = nn.ModuleList([nn.Linear(4, 4)])

     def forward(self, x):
         x = torch.tanh(self.first(x))
         for layer in self.rest:
             x = layer(x)
         return x


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Parts that are meant to stay as they are; `requires_grad_(False)` says so. `gradscope doctor
--ignore GS307` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import lost
from gradscope.rules.rule import Rule


class NotInOptimizer(Rule):
    code = "GS307"
    name = "not-in-optimizer"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return lost.not_in_optimizer(facts)

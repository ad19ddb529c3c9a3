"""GS533 weight-not-detached

The log-probability of a sample is multiplied by something that has a gradient of its own, and a
step uses that.

## How it is recognised

The result of a distribution's `log_prob`, of what its `sample` gave, is multiplied by a tensor
of several elements that requires grad; backward goes through the product, and an optimizer then
steps with a gradient that a parameter behind that tensor has got. A program that clears those
gradients before the step of their own optimizer is not told of.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 policy, critic = nn.Linear(4, 3), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()])
 for step in range(3):
     state = torch.randn(16, 4)
     choice = torch.distributions.Categorical(logits=policy(state))
     action = choice.sample()
     reward = (action == 1).float()
     value = critic(state).squeeze(1)
-    advantage = reward - value
+    advantage = (reward - value).detach()
     loss = (value - reward).pow(2).mean() - (choice.log_prob(action) * advantage).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the weight is to learn from how likely samples are, as some estimators of low variance do.
`gradscope doctor --ignore GS533` leaves it out.
"""

from __future__ import annotations

from gradscope.rules.questions.wording import MistakeRule, MistakeWords

_WORDS = MistakeWords(
    "{this} multiplies the log-probability of a sample by what has a gradient itself.",
    "a step used a gradient that the weight sends to what it was computed from: {0} parameters",
    "In a policy gradient the weight is a number: a return, a reward or an advantage. Where it "
    "has history, what computes it is trained to weigh likely samples otherwise.",
    "Detach it: `advantage = (returns - values).detach()`.",
)


class WeightNotDetached(MistakeRule):
    code = "GS533"
    name = "weight-not-detached"
    words = {"weight learns": _WORDS}

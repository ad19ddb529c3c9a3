import torch
from torch import nn


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
        self.value = nn.Linear(12, 1)
        self.policy = nn.Linear(12, 3)


torch.manual_seed(0)
net = TwoHeads()
value_optimizer = torch.optim.Adam([*net.trunk.parameters(), *net.value.parameters()], lr=1e-3)
policy_optimizer = torch.optim.Adam([*net.trunk.parameters(), *net.policy.parameters()], lr=1e-3)
for _update in range(6):
    states, returns = torch.randn(16, 6), torch.randn(16, 1)
    actions = torch.randint(0, 3, (16,))
    features = net.trunk(states)

    value_optimizer.zero_grad()
    value = net.value(features)
    nn.functional.mse_loss(value, returns).backward()

    policy_optimizer.zero_grad()  # <- GS505
    advantage = (returns - value).detach().squeeze(1)
    scores = torch.log_softmax(net.policy(features.detach()), dim=1)
    (-scores[torch.arange(16), actions] * advantage).mean().backward()

    value_optimizer.step()
    policy_optimizer.step()

import torch
import torch.nn.functional as F


class Architect:
    """Moves the mixing weights on the validation half of the data."""

    def __init__(self, net, lr: float, weight_decay: float):
        self.net = net
        self.optimizer = torch.optim.Adam(
            net.arch_parameters(), lr=lr, betas=(0.5, 0.999), weight_decay=weight_decay
        )

    def step(self, x, y) -> float:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

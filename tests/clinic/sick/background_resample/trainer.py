import torch
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, weights, lr, lr_w, background_class):
        self.net = net
        self.weights = weights
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.optimizer_w = torch.optim.Adam(weights.parameters(), lr=lr_w)
        self.background_class = background_class
        self.logs = []

    def losses(self, x, y, background, index):
        logits = self.net(torch.cat([x, background]))
        inside, outside = logits.split([len(x), len(background)])
        label = torch.full((len(background),), self.background_class)
        error = F.cross_entropy(outside, label, reduction="none")
        weight = self.weights(index)
        loss = F.cross_entropy(inside, y) + (weight.detach() * error).mean()
        loss_w = -(weight * error).mean() + (weight.mean() - 1).pow(2)  # <~ GS401
        return loss, loss_w, inside

    def train_step(self, x, y, background, index):
        loss, loss_w, logits = self.losses(x, y, background, index)
        self.optimizer.zero_grad()
        self.optimizer_w.zero_grad()
        loss.backward(retain_graph=True)
        self.optimizer.step()  # <- GS401
        loss_w.backward()
        self.optimizer_w.step()
        accuracy = (logits.argmax(1) == y).float().mean().item()
        self.logs.append((loss.item(), loss_w.item(), accuracy))

    def train_epoch(self, loader):
        self.logs.clear()
        for batch in loader:
            self.train_step(*batch)
        return [sum(column) / len(self.logs) for column in zip(*self.logs)]

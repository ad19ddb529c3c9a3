"""Domain-adversarial training from a source to a shifted target domain."""

import torch
import torch.nn.functional as F
from functions import adaptation_strength
from models import DomainHead, Extractor, LabelHead
from params import Params


def draw(centers, count, shift):
    y = torch.randint(0, len(centers), (count,))
    return centers[y] + 0.7 * torch.randn(count, centers.shape[1]) + shift, y


def train(params):
    centers = torch.randn(4, 20)
    shift = 0.8 * torch.randn(20)
    feature, label, domain = Extractor(), LabelHead(), DomainHead()
    modules = [feature, label, domain]
    optimizer = torch.optim.SGD(
        [p for m in modules for p in m.parameters()], lr=params.lr, momentum=params.momentum
    )
    total = params.epochs * params.steps
    tags = torch.cat([torch.zeros(params.batch_size), torch.ones(params.batch_size)]).long()
    for epoch in range(params.epochs):
        for step in range(params.steps):
            progress = (epoch * params.steps + step) / total
            constant = adaptation_strength(progress, params.gamma)
            src, y = draw(centers, params.batch_size, 0.0)
            tgt, _ = draw(centers, params.batch_size, shift)
            h_src, h_tgt = feature(src), feature(tgt)
            class_loss = F.cross_entropy(label(h_src), y)
            logits = domain(torch.cat([h_src, h_tgt]), constant)
            domain_loss = F.cross_entropy(logits, tags)
            loss = class_loss + params.theta * domain_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = (logits.argmax(1) == tags).float().mean().item()
        print(
            f"epoch {epoch}: class {class_loss.item():.3f} "
            f"domain {domain_loss.item():.3f} domain acc {accuracy:.2f}"
        )


if __name__ == "__main__":
    torch.manual_seed(15)
    train(Params())

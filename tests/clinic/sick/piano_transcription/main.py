import itertools

import torch
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader

from dataset import SyntheticPiano
from transcriber import Transcriber


def config():
    return {
        "iterations": 16,
        "batch_size": 4,
        "learning_rate": 0.05,
        "learning_rate_decay_steps": 8,
        "learning_rate_decay_rate": 0.98,
        "clip_gradient_norm": 3.0,
        "validation_interval": 8,
    }


@torch.no_grad()
def evaluate(model, dataset):
    model.eval()
    batch = torch.utils.data.default_collate([dataset[i] for i in range(len(dataset))])
    predictions, losses = model.run_on_batch(batch)
    hits = ((predictions["frame"] > 0.5) == (batch["frame"] > 0.5)).float().mean()
    model.train()
    return {"frame accuracy": hits.item(), "loss": sum(losses.values()).item()}


def train(iterations, batch_size, learning_rate, clip_gradient_norm, **options):
    torch.manual_seed(7)
    dataset, validation = SyntheticPiano(16, seed=1), SyntheticPiano(4, seed=2)
    loader = DataLoader(dataset, batch_size, shuffle=True, drop_last=True)
    model = Transcriber(features=16, pitches=8)
    optimizer = torch.optim.SGD(model.parameters(), learning_rate)
    decay = options["learning_rate_decay_steps"], options["learning_rate_decay_rate"]
    scheduler = StepLR(optimizer, *decay)

    loop = itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), iterations)
    for i, batch in enumerate(loop, start=1):
        predictions, losses = model.run_on_batch(batch)
        loss = sum(losses.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()

        if clip_gradient_norm:
            clip_grad_norm_(model.parameters(), clip_gradient_norm)  # <- GS506

        if i % 4 == 0:
            print(i, {key: round(value.item(), 3) for key, value in losses.items()})
        if i % options["validation_interval"] == 0:
            print("validation", evaluate(model, validation))


if __name__ == "__main__":
    train(**config())

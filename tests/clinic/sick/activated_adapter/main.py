import torch
import torch.nn.functional as F
from model import CausalModel

CONFIG = {"vocab": 32, "dim": 24, "layers": 2, "rank": 4, "lr": 1e-2, "steps": 14, "length": 10}


def make_batch(generator):
    ids = torch.randint(4, CONFIG["vocab"], (16, CONFIG["length"] + 1), generator=generator)
    offsets = torch.randint(2, CONFIG["length"] - 3, (16,), generator=generator)
    for row, start in enumerate(offsets.tolist()):
        ids[row, start] = 1
        ids[row, start + 1 :] = 2 + torch.arange(CONFIG["length"] - start) % 2
    return ids, offsets


def answer_loss(logits, targets, offsets):
    active = torch.arange(targets.size(1)).unsqueeze(0) >= offsets.unsqueeze(1)
    losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (losses.view_as(targets) * active).sum() / active.sum()


def train(model, optimizer, generator):
    model.train()
    for step in range(CONFIG["steps"]):
        ids, offsets = make_batch(generator)
        logits = model(ids[:, :-1], offsets)
        loss = answer_loss(logits, ids[:, 1:], offsets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 4 == 0:
            print(f"step {step:2d} loss {loss.item():.4f}")


@torch.no_grad()
def evaluate(model, generator):
    model.eval()
    ids, offsets = make_batch(generator)
    return answer_loss(model(ids[:, :-1], offsets), ids[:, 1:], offsets).item()


def main():
    torch.manual_seed(5)
    generator = torch.Generator().manual_seed(6)
    model = CausalModel(CONFIG["vocab"], CONFIG["dim"], CONFIG["layers"]).adapt(CONFIG["rank"])
    adapters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(adapters, lr=CONFIG["lr"])
    train(model, optimizer, generator)
    print(f"answers {evaluate(model, generator):.4f}")


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F
from model import InterestRanker


def clicks(n: int):
    user = torch.randint(0, 60, (n,))
    item = torch.randint(1, 150, (n,))
    history = torch.randint(1, 150, (n, 8))
    history[torch.rand(n, 8) < 0.2] = 0
    history[:, 0] = torch.randint(1, 150, (n,))
    liked = ((history % 5) == (item % 5)[:, None]).sum(1) + (user % 3 == item % 3)
    return user, item, history, (liked > 2).float()


def auc(score, label) -> float:
    wins = score[label == 1][:, None] > score[label == 0][None]
    return wins.float().mean().item()


def main():
    torch.manual_seed(31)
    data, held_out = clicks(1024), clicks(256)
    model = InterestRanker()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(24):
        pick = torch.randint(0, 1024, (64,))
        user, item, history, label = (part[pick] for part in data)
        loss = F.binary_cross_entropy_with_logits(model(user, item, history), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 8 == 7:
            model.eval()
            with torch.no_grad():
                value = auc(model(*held_out[:3]), held_out[3])
            model.train()
            print(f"step {step + 1}: loss {loss.item():.4f}  auc {value:.3f}")


if __name__ == "__main__":
    main()

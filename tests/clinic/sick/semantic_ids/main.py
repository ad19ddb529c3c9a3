import torch
import torch.nn.functional as F
from model import ItemTokenizer


def catalogue(n: int, features: int):
    genres = torch.randn(12, features)
    return genres[torch.randint(0, 12, (n,))] + 0.3 * torch.randn(n, features)


def unique_ids(model, items) -> int:
    model.eval()
    with torch.no_grad():
        ids = model(items)[1]
    model.train()
    return len({tuple(row) for row in ids.tolist()})


def main():
    torch.manual_seed(8)
    items = catalogue(512, 32)
    model = ItemTokenizer()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(30):
        batch = items[torch.randint(0, len(items), (64,))]
        restored, _, quantize_loss = model(batch)
        reconstruction = F.mse_loss(restored, batch)
        loss = reconstruction + quantize_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            print(
                f"step {step + 1}: reconstruction {reconstruction.item():.4f}  "
                f"quantize {quantize_loss.item():.4f}  ids {unique_ids(model, items)}"
            )


if __name__ == "__main__":
    main()

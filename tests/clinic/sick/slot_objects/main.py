import torch
import torch.nn.functional as F

from model import ObjectAutoencoder

PARAMS = {"size": 8, "batch_size": 16, "steps": 15, "lr": 4e-3, "warmup": 5, "seed": 0}


def scenes(count, size):
    images = torch.zeros(count, 1, size, size)
    for image in images:
        for value in (0.5, 1.0):
            y, x = torch.randint(0, size - 2, (2,)).tolist()
            image[0, y : y + 2, x : x + 2] = value
    return images


def main():
    torch.manual_seed(PARAMS["seed"])
    model = ObjectAutoencoder(PARAMS["size"])
    optimizer = torch.optim.Adam(model.parameters(), lr=PARAMS["lr"])
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / PARAMS["warmup"])
    )
    for step in range(PARAMS["steps"]):
        batch = scenes(PARAMS["batch_size"], PARAMS["size"])
        recon, mask = model(batch)
        loss = F.mse_loss(recon, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 5 == 0:
            busy = (mask.mean(-1) > 0.1).float().sum(1).mean().item()
            print(f"step {step} mse {loss.item():.4f} slots in use {busy:.2f}")


if __name__ == "__main__":
    main()

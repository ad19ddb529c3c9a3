import torch

from detector import Detector

CFG = dict(
    widths=[8, 16, 32],
    neck_channels=16,
    act_cfg=dict(type="ReLU"),
    size=32,
    samples=64,
    batch_size=8,
    max_epochs=2,
    optimizer=dict(lr=0.05, momentum=0.9, weight_decay=1e-4),
    log_interval=4,
)


def build_dataset(cfg, gen):
    images = 0.2 * torch.randn(cfg["samples"], 1, cfg["size"], cfg["size"], generator=gen)
    masks = torch.zeros_like(images)
    for i in range(cfg["samples"]):
        x, y = torch.randint(0, cfg["size"] - 8, (2,), generator=gen).tolist()
        masks[i, 0, y : y + 8, x : x + 8] = 1.0
    return images + masks, masks


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(0)
    images, masks = build_dataset(CFG, gen)
    model = Detector(CFG)
    optimizer = torch.optim.SGD(model.parameters(), **CFG["optimizer"])
    it = 0
    for epoch in range(CFG["max_epochs"]):
        model.train()
        for idx in torch.randperm(CFG["samples"], generator=gen).split(CFG["batch_size"]):
            loss = model.loss(images[idx], masks[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            it += 1
            if it % CFG["log_interval"] == 0:
                print(f"Epoch [{epoch + 1}] iter {it} loss: {loss.item():.4f}")


if __name__ == "__main__":
    main()

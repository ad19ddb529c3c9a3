import torch

from data import make_images
from losses import detection_loss
from model import CellDetector

CFG = {
    "num_images": 128,
    "size": 24,
    "grid": 6,
    "batch_size": 32,
    "epochs": 30,
    "lr": 0.01,
    "noobj_weight": 1.0,
    "box_weight": 2.0,
    "seed": 1,
}


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    images, targets = make_images(cfg["num_images"], cfg["size"], cfg["grid"], gen)
    model = CellDetector()
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    step = 0
    for epoch in range(cfg["epochs"]):
        for idx in torch.randperm(len(images), generator=gen).split(cfg["batch_size"]):
            conf_loss, box_loss = detection_loss(model(images[idx]), targets[idx], cfg)
            loss = conf_loss + box_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 20 == 0:
                print(
                    f"epoch {epoch:2d} step {step:3d} conf {conf_loss.item():.4f} "
                    f"box {box_loss.item():.4f}"
                )


if __name__ == "__main__":
    main(CFG)

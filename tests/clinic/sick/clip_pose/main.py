import torch
import torch.nn.functional as F

from data import ANGLES, make_loader
from model import ClipPoseNet

CFG = {
    "num_clips": 32,
    "frames": 4,
    "size": 12,
    "batch_size": 4,
    "pseudo_batch_loop": 2,
    "lr": 0.05,
    "momentum": 0.9,
    "phases": [
        {"epochs": 4, "targets": ["yaw", "pitch", "roll"]},
        {"epochs": 2, "targets": ["yaw"]},
    ],
}


def pose_loss(outputs, angles, targets):
    loss = 0.0
    for k, name in enumerate(ANGLES):
        if name in targets:
            loss = loss + F.mse_loss(outputs[name], angles[:, k], reduction="sum")
    return loss


def rescale_gradients(model, num_samples):
    for param in model.parameters():
        if param.requires_grad:  # <~ GS000
            param.grad *= 1.0 / float(num_samples)  # <- GS000


def run_epoch(model, loader, optimizer, targets, cfg, step):
    model.train()
    optimizer.zero_grad()
    running = 0.0
    for it, (clips, angles) in enumerate(loader):
        loss = pose_loss(model(clips), angles, targets)
        loss.backward()
        running += loss.item()
        if (it + 1) % cfg["pseudo_batch_loop"] == 0:
            seen = cfg["pseudo_batch_loop"] * cfg["batch_size"]
            rescale_gradients(model, seen)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step % 4 == 0:
                print(f"step {step:3d} targets={'+'.join(targets)} loss {running / seen:.4f}")
            running = 0.0
    return step


def main():
    torch.manual_seed(3)
    loader = make_loader(CFG, seed=3)
    model = ClipPoseNet()
    model(next(iter(loader))[0])
    optimizer = torch.optim.SGD(model.parameters(), lr=CFG["lr"], momentum=CFG["momentum"])
    step = 0
    for phase in CFG["phases"]:
        for _ in range(phase["epochs"]):
            step = run_epoch(model, loader, optimizer, phase["targets"], CFG, step)


if __name__ == "__main__":
    main()

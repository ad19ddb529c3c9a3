import torch

from model import TinyUNet, dice_bce

CONFIG = {
    "optimizer_steps": 15,
    "accumulate": 3,
    "micro_batch": 6,
    "size": 16,
    "lr": 5e-3,
    "warmup_steps": 5,
    "clip": 1.0,
    "init_scale": 2.0**16,
    "growth_interval": 3,
    "log_every": 5,
    "seed": 0,
}


def make_batch(n, size, generator):
    """Noisy discs and their masks."""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    c = torch.rand(n, 2, 1, 1, generator=generator) * size
    r = 2 + 3 * torch.rand(n, 1, 1, generator=generator)
    mask = (((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2) < r**2).float().unsqueeze(1)
    return mask + 0.6 * torch.randn(n, 1, size, size, generator=generator), mask


def main(cfg):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    model = TinyUNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / cfg["warmup_steps"])
    )
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=cfg["init_scale"], growth_interval=cfg["growth_interval"]
    )

    done, attempts, running = 0, 0, []
    while done < cfg["optimizer_steps"]:
        optimizer.zero_grad()
        window = 0.0
        for _ in range(cfg["accumulate"]):
            image, mask = make_batch(cfg["micro_batch"], cfg["size"], gen)
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(image)
            loss = dice_bce(logits, mask) / cfg["accumulate"]
            scaler.scale(loss).backward()
            window += loss.item()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg["clip"])
        scale_before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        attempts += 1
        running.append(window)
        if scaler.get_scale() < scale_before:
            continue
        scheduler.step()
        done += 1
        if done % cfg["log_every"] == 0:
            print(
                f"step {done:3d} ({attempts} windows)  "
                f"loss {sum(running[-5:]) / len(running[-5:]):.4f}  "
                f"scale {scaler.get_scale():.0f}  lr {scheduler.get_last_lr()[0]:.4f}"
            )


if __name__ == "__main__":
    main(CONFIG)

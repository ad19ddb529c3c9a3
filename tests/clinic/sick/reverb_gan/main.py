"""Train the room-to-reverb model on synthetic rooms."""

import torch

from trainer import Room2Reverb

CONFIG = {
    "seed": 11,
    "feat_dim": 16,
    "noise_dim": 8,
    "lambda_spec": 1.0,
    "lr_g": 1e-3,
    "lr_d": 1e-3,
    "batch_size": 16,
    "steps": 30,
    "log_every": 5,
}


def make_rooms(batch_size, gen):
    """Bigger (brighter) rooms decay slower; every response has its own fine grain."""
    size = torch.rand(batch_size, 1, 1, 1, generator=gen)
    image = size + 0.2 * torch.randn(batch_size, 3, 16, 16, generator=gen)
    t = torch.linspace(0, 1, 16)[None, None, None, :]
    f = torch.linspace(0.5, 1.5, 16)[None, None, :, None]
    envelope = 1.6 * torch.exp(-t * f * (5.0 - 4.0 * size)) - 0.8
    grain = 0.25 * torch.sign(torch.randn(batch_size, 1, 16, 16, generator=gen))
    return image, (envelope + grain).clamp(-1, 1)


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    model = Room2Reverb(cfg)
    for step in range(1, cfg["steps"] + 1):
        image, spec = make_rooms(cfg["batch_size"], gen)
        logs = model.training_step(image, spec)
        if step % cfg["log_every"] == 0:
            print(f"step {step:4d} " + " ".join(f"{k} {v:.3f}" for k, v in logs.items()))
    return model


if __name__ == "__main__":
    main()

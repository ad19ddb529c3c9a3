import torch

from config import TrainConfig
from model import Ema, VelocityNet


def latents(config, generator):
    centres = torch.randn(4, config.latent_dim, generator=generator) * 2
    while True:
        pick = torch.randint(0, 4, (config.micro_batch_size,), generator=generator)
        noise = torch.randn(config.micro_batch_size, config.latent_dim, generator=generator)
        yield centres[pick] + 0.2 * noise


def flow_loss(model, x1, generator):
    x0 = torch.randn(x1.shape, generator=generator)
    t = torch.rand(len(x1), 1, generator=generator)
    xt = (1 - t) * x0 + t * x1
    return (model(xt, t) - (x1 - x0)).pow(2).mean()


def train(config):
    torch.manual_seed(config.seed)
    generator = torch.Generator().manual_seed(config.seed + 1)
    model = VelocityNet(config.latent_dim)
    ema = Ema(model, config.ema_decay)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, 1.0, total_iters=5)
    stream = latents(config, generator)
    for step in range(config.max_steps):
        step_loss = 0.0
        for _ in range(config.accumulation):
            optimizer.zero_grad(set_to_none=True)  # <- GS505
            loss = flow_loss(model, next(stream), generator) / config.accumulation
            loss.backward()
            step_loss += loss.item()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        scheduler.step()
        ema.update(model)
        print(f"step {step:2d} loss {step_loss:.4f} grad norm {norm.item():.3f}")
    return ema.model


@torch.no_grad()
def sample(model, config, steps=10):
    x = torch.randn(16, config.latent_dim)
    for i in range(steps):
        t = torch.full((16, 1), i / steps)
        x = x + model(x, t) / steps
    return x


if __name__ == "__main__":
    cfg = TrainConfig()
    samples = sample(train(cfg), cfg)
    print("sample std", samples.std().item())

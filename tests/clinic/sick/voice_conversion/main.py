import torch

from losses import discriminator_loss, feature_loss, generator_loss, mel_like_loss
from models import PeriodDiscriminator, Synthesizer


class HParams:
    learning_rate = 5e-3
    betas = (0.8, 0.99)
    lr_decay = 0.98
    epochs = 4
    steps_per_epoch = 4
    batch_size = 4
    segment = 32
    seed = 1234


def batches(hps, generator):
    for _ in range(hps.steps_per_epoch):
        content = torch.randn(hps.batch_size, 12, hps.segment // 4, generator=generator)
        t = torch.arange(hps.segment) / 8.0
        pitch = content[:, 0].mean(-1, keepdim=True) + 2.0
        yield content, torch.sin(pitch * t)[:, None] * 0.8


def train_and_evaluate(hps, nets, optims, schedulers, scaler, generator, epoch):
    net_g, net_d = nets
    optim_g, optim_d = optims
    totals = [0.0, 0.0]
    for content, wave in batches(hps, generator):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            fake = net_g(content)
            real_score, _ = net_d(wave)
            fake_score, _ = net_d(fake.detach())
        loss_disc = discriminator_loss(real_score.float(), fake_score.float())
        optim_d.zero_grad()
        scaler.scale(loss_disc).backward()
        scaler.unscale_(optim_d)
        scaler.step(optim_d)

        with torch.autocast("cpu", dtype=torch.bfloat16):
            _, real_maps = net_d(wave)
            fake_score, fake_maps = net_d(fake)
        loss_gen = generator_loss(fake_score.float())
        loss_gen = loss_gen + feature_loss(real_maps.float(), fake_maps.float())
        loss_gen = loss_gen + mel_like_loss(wave, fake.float())
        optim_g.zero_grad()
        scaler.scale(loss_gen).backward()
        scaler.unscale_(optim_g)
        scaler.step(optim_g)
        scaler.update()
        totals[0] += loss_disc.item()
        totals[1] += loss_gen.item()

    optim_g.step()  # <- GS000
    optim_d.step()  # <~ GS000
    for scheduler in schedulers:
        scheduler.step()
    disc, gen = (t / hps.steps_per_epoch for t in totals)
    print(f"epoch {epoch} | disc {disc:.4f} | gen {gen:.4f}")


def main():
    hps = HParams()
    torch.manual_seed(hps.seed)
    generator = torch.Generator().manual_seed(hps.seed)
    nets = Synthesizer(), PeriodDiscriminator(period=2)
    optims = [torch.optim.AdamW(n.parameters(), hps.learning_rate, betas=hps.betas) for n in nets]
    schedulers = [torch.optim.lr_scheduler.ExponentialLR(o, hps.lr_decay) for o in optims]
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    for epoch in range(hps.epochs):
        train_and_evaluate(hps, nets, optims, schedulers, scaler, generator, epoch)


if __name__ == "__main__":
    main()

"""Synthetic table generation with a packed Wasserstein critic."""

import torch
from networks import RowCritic, RowGenerator
from penalties import lipschitz_penalty

CONFIG = {
    "columns": 6,
    "noise": 8,
    "hidden": 32,
    "batch": 64,
    "rounds": 12,
    "critic_steps": 3,
    "lr": 2e-3,
}


def make_table(rows, columns):
    base = torch.randn(rows, 2)
    mixing = torch.randn(2, columns)
    table = torch.tanh(base @ mixing + 0.1 * torch.randn(rows, columns))
    return table


def train(cfg):
    table = make_table(1024, cfg["columns"])
    generator = RowGenerator(cfg["noise"], cfg["hidden"], cfg["columns"])
    critic = RowCritic(cfg["columns"], cfg["hidden"])
    opt_g = torch.optim.Adam(generator.parameters(), lr=cfg["lr"], betas=(0.5, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=cfg["lr"], betas=(0.5, 0.9))

    for rnd in range(cfg["rounds"]):
        for _ in range(cfg["critic_steps"]):
            real = table[torch.randint(0, len(table), (cfg["batch"],))]
            with torch.no_grad():
                fake = generator(torch.randn(cfg["batch"], cfg["noise"]))
            wasserstein = critic(fake).mean() - critic(real).mean()
            penalty = lipschitz_penalty(critic, real, fake)
            loss_c = wasserstein + penalty
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()

        fake = generator(torch.randn(cfg["batch"], cfg["noise"]))
        loss_g = -critic(fake).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if rnd % 4 == 0:
            print(
                f"round {rnd:3d} w {wasserstein.item():.3f} "
                f"gp {penalty.item():.3f} g {loss_g.item():.3f}"
            )
    return generator


if __name__ == "__main__":
    torch.manual_seed(7)
    train(CONFIG)

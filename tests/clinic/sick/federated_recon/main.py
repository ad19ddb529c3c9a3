import torch

from client import LocalUpdate
from models import SiteDiscriminator, UnetLike

OPTIONS = {
    "rounds": 3,
    "local_epochs": 1,
    "local_bs": 4,
    "lr": 1e-3,
    "adv_weight": 0.5,
    "sites": 2,
    "size": 16,
}


def phantoms(count, size, contrast, generator):
    grid = torch.linspace(-1, 1, size)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    radius = 0.3 + 0.5 * torch.rand(count, 1, 1, generator=generator)
    disc = ((xx**2 + yy**2) < radius**2).float() * contrast
    return (disc + 0.1 * torch.randn(count, size, size, generator=generator)).unsqueeze(1)


def average(states):
    return {k: torch.stack([s[k].float() for s in states]).mean(0) for k in states[0]}


def main():
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(4)
    size = OPTIONS["size"]
    mask = (torch.rand(size, generator=generator) < 0.5).float().view(1, 1, 1, size)
    mask[..., 0] = 1.0
    clients = []
    for site in range(OPTIONS["sites"]):
        images = phantoms(8, size, 1.0 + 0.5 * site, generator)
        clients.append(LocalUpdate(OPTIONS, images, mask))
    target = phantoms(4, size, 2.0, generator)

    server = UnetLike()
    discriminators = [SiteDiscriminator(16) for _ in clients]
    disc_optimizers = [torch.optim.Adam(d.parameters(), lr=1e-3) for d in discriminators]
    for round_number in range(OPTIONS["rounds"]):
        states = []
        for client, disc, disc_opt in zip(clients, discriminators, disc_optimizers):
            states.append(client.train(server, disc, disc_opt, target))
        server.load_state_dict(average(states))
        recon = sum(c.history["recon"][-1] for c in clients) / len(clients)
        adv = sum(c.history["adv"][-1] for c in clients) / len(clients)
        print(f"round {round_number}: recon {recon:.4f} adv {adv:.4f}")


if __name__ == "__main__":
    main()

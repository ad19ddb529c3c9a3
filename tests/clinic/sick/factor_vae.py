import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, pixels=64, latent=6, hidden=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(pixels, hidden), nn.ReLU())
        self.to_mu = nn.Linear(hidden, latent)
        self.to_logvar = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, pixels)
        )

    def forward(self, x):
        h = self.encoder(x.flatten(1))
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar, z


class LatentDiscriminator(nn.Module):
    def __init__(self, latent=6, hidden=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, hidden),
            nn.LeakyReLU(0.2),
            nn.Linear(hidden, 2),
        )

    def forward(self, z):
        return self.net(z)


def permute_dims(z):
    columns = [z[torch.randperm(len(z)), i] for i in range(z.shape[1])]
    return torch.stack(columns, dim=1)


class FactorLoss:
    """Total correlation by the density-ratio trick; owns the discriminator."""

    def __init__(self, gamma=6.0, disc_lr=5e-4):
        self.gamma = gamma
        self.discriminator = LatentDiscriminator()
        self.optimizer_d = torch.optim.Adam(
            self.discriminator.parameters(), lr=disc_lr, betas=(0.5, 0.9)
        )

    def call_optimize(self, data, model, optimizer, storer):
        half = len(data) // 2
        data1, data2 = data[:half], data[half:]
        recon, mu, logvar, z1 = model(data1)
        rec_loss = F.binary_cross_entropy_with_logits(recon, data1.flatten(1), reduction="sum")
        rec_loss = rec_loss / half
        kl_loss = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        d_z = self.discriminator(z1)
        tc_loss = (d_z[:, 0] - d_z[:, 1]).mean()
        vae_loss = rec_loss + kl_loss + self.gamma * tc_loss

        optimizer.zero_grad()
        vae_loss.backward(retain_graph=True)
        optimizer.step()  # <- GS401

        z2 = model(data2)[-1].detach()
        d_perm = self.discriminator(permute_dims(z2))
        ones = torch.ones(half, dtype=torch.long)
        zeros = torch.zeros_like(ones)
        d_tc_loss = 0.5 * (F.cross_entropy(d_z, zeros) + F.cross_entropy(d_perm, ones))  # <~ GS401

        self.optimizer_d.zero_grad()
        d_tc_loss.backward()
        self.optimizer_d.step()
        for name, value in [("rec", rec_loss), ("kl", kl_loss), ("tc", tc_loss), ("d", d_tc_loss)]:
            storer.setdefault(name, []).append(value.item())
        return vae_loss


def sprites(count, size=8):
    images = torch.zeros(count, size, size)
    for image in images:
        y, x = torch.randint(0, size - 3, (2,)).tolist()
        image[y : y + 3, x : x + 3] = 1.0
    return images


def main(epochs=3, batch_size=32):
    torch.manual_seed(33)
    model, loss = VAE(), FactorLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    data = sprites(128)
    for epoch in range(epochs):
        storer = {}
        for batch in data[torch.randperm(len(data))].split(batch_size):
            loss.call_optimize(batch, model, optimizer, storer)
        print(epoch, {k: round(sum(v) / len(v), 4) for k, v in storer.items()})


if __name__ == "__main__":
    main()

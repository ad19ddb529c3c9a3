import torch
import torch.nn as nn
import torch.nn.functional as F

from models import ContentFeatures, Discriminator, Generator


class SrganTrainer:
    def __init__(self, lr=1e-3):
        self.generator, self.discriminator = Generator(), Discriminator()
        self.content = ContentFeatures()
        self.pixel, self.adversarial = nn.MSELoss(), nn.BCEWithLogitsLoss()
        self.optim_p = torch.optim.Adam(self.generator.parameters(), lr)
        self.optim_g = torch.optim.Adam(self.generator.parameters(), lr)
        self.optim_d = torch.optim.Adam(self.discriminator.parameters(), lr)

    def train_psnr(self, loader):
        self.generator.train()
        for lr_images, hr_images in loader:
            self.optim_p.zero_grad()
            loss = self.pixel(self.generator(lr_images), hr_images)
            loss.backward()
            self.optim_p.step()
        return loss.item()

    def train_discriminator(self, sr, hr):
        real, fake = torch.ones(len(hr), 1), torch.zeros(len(hr), 1)
        self.optim_d.zero_grad()
        d_loss = self.adversarial(self.discriminator(hr), real)
        d_loss = d_loss + self.adversarial(self.discriminator(sr), fake)
        d_loss.backward()
        self.optim_d.step()
        return d_loss.item()

    def train_gan(self, loader):
        self.generator.train()
        self.discriminator.train()
        for lr_images, hr_images in loader:
            with torch.no_grad():  # <- GS304
                sr = self.generator(lr_images)  # <~ GS304
            d_loss = self.train_discriminator(sr, hr_images)

            for p in self.discriminator.parameters():
                p.requires_grad = False
            self.optim_g.zero_grad()
            real = torch.ones(len(hr_images), 1)
            g_loss = self.pixel(sr, hr_images) + 0.006 * self.content(sr, hr_images)
            g_loss = g_loss + 0.001 * self.adversarial(self.discriminator(sr), real)
            g_loss.backward()
            self.optim_g.step()
            for p in self.discriminator.parameters():
                p.requires_grad = True
        return d_loss, g_loss.item()


def image_pairs(batches, batch_size=4, size=16):
    pairs = []
    for _ in range(batches):
        coarse = torch.rand(batch_size, 3, 5, 5)
        hr = F.interpolate(coarse, size=(size, size), mode="bicubic", align_corners=False)
        pairs.append((F.avg_pool2d(hr, 2), hr))
    return pairs


def main():
    torch.manual_seed(61)
    trainer = SrganTrainer()
    loader = image_pairs(4)
    for epoch in range(2):
        print(f"psnr stage epoch {epoch}: pixel {trainer.train_psnr(loader):.4f}")
    for epoch in range(3):
        d_loss, g_loss = trainer.train_gan(loader)
        print(f"gan stage epoch {epoch}: d {d_loss:.4f} g {g_loss:.4f}")


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F

from networks import SceneEncoder, SpecDiscriminator, SpecGenerator


class Room2Reverb:
    """Conditional least-squares GAN: room image in, reverb spectrogram out."""

    def __init__(self, cfg):
        self.enc = SceneEncoder(cfg["feat_dim"])
        self.g = SpecGenerator(cfg["feat_dim"], cfg["noise_dim"])
        self.d = SpecDiscriminator(cfg["feat_dim"])
        self.lambda_spec = cfg["lambda_spec"]
        self.opt_g = torch.optim.Adam(
            list(self.enc.parameters()) + list(self.g.parameters()),
            lr=cfg["lr_g"],
            betas=(0.5, 0.9),
        )
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=cfg["lr_d"], betas=(0.5, 0.9))

    def generator_step(self, image, spec):
        f = self.enc(image)
        fake_spec = self.g(f)
        d_fake = self.d(fake_spec.detach(), f)  # <- GS000
        g_loss1 = F.mse_loss(d_fake, torch.ones_like(d_fake))
        g_loss2 = F.l1_loss(fake_spec, spec)
        g_loss = g_loss1 + self.lambda_spec * g_loss2
        self.opt_g.zero_grad()
        g_loss.backward()
        self.opt_g.step()
        return {"G": g_loss1.item(), "spec": g_loss2.item()}

    def discriminator_step(self, image, spec):
        with torch.no_grad():
            f = self.enc(image)
            fake_spec = self.g(f)
        d_real = self.d(spec, f)
        d_fake = self.d(fake_spec, f)
        d_loss = 0.5 * (
            F.mse_loss(d_real, torch.ones_like(d_real))
            + F.mse_loss(d_fake, torch.zeros_like(d_fake))
        )
        self.opt_d.zero_grad()
        d_loss.backward()
        self.opt_d.step()
        return {"D": d_loss.item(), "D_real": d_real.mean().item(), "D_fake": d_fake.mean().item()}

    def training_step(self, image, spec):
        logs = self.generator_step(image, spec)
        logs.update(self.discriminator_step(image, spec))
        return logs

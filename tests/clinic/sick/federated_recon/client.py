import copy

import torch
import torch.nn.functional as F


class LocalUpdate:
    """One hospital: trains its copy and aligns its latents with those of the target site."""

    def __init__(self, options, images, masks):
        self.options = options
        self.images = images
        self.masks = masks
        self.history = {"recon": [], "adv": [], "disc": []}

    def undersample(self, image, mask):
        spectrum = torch.fft.fft2(image)
        return torch.fft.ifft2(spectrum * mask).real

    def discriminator_step(self, discriminator, optimizer, source, target):
        real = discriminator(target.detach())
        fake = discriminator(source.detach())
        loss = F.binary_cross_entropy_with_logits(real, torch.ones_like(real))
        loss = loss + F.binary_cross_entropy_with_logits(fake, torch.zeros_like(fake))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        self.history["disc"].append(loss.item())

    def train(self, net, discriminator, disc_optimizer, target_images):
        net = copy.deepcopy(net)
        optimizer = torch.optim.RMSprop(net.parameters(), lr=self.options["lr"])
        for _ in range(self.options["local_epochs"]):
            for start in range(0, len(self.images), self.options["local_bs"]):
                batch = self.images[start : start + self.options["local_bs"]]
                output, latent = net(self.undersample(batch, self.masks))
                _, target_latent = net(self.undersample(target_images, self.masks))
                self.discriminator_step(discriminator, disc_optimizer, latent, target_latent)

                loss_recon = F.l1_loss(output, batch)
                verdict = discriminator(latent)
                fooled = torch.ones_like(verdict)
                loss_adv = F.binary_cross_entropy_with_logits(verdict, fooled)
                loss_adv_g = loss_adv.item()  # <- GS303
                loss = loss_recon + self.options["adv_weight"] * loss_adv_g
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                self.history["recon"].append(loss_recon.item())
                self.history["adv"].append(float(loss_adv_g))
        return net.state_dict()

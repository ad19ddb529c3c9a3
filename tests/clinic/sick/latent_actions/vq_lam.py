import torch
import torch.nn as nn
import torch.nn.functional as F

from blocks import MLP, VectorQuantizer


class VQLatentActionModel(nn.Module):
    """Infers a discrete action from two frames and predicts the second frame from it."""

    def __init__(self, frame_dim, latent_dim=4, num_codes=8, hidden=32, beta=0.25):
        super().__init__()
        self.encoder = MLP(2 * frame_dim, hidden, latent_dim)
        self.vq = VectorQuantizer(num_codes, latent_dim)
        self.decoder = MLP(frame_dim + latent_dim, hidden, frame_dim)
        self.beta = beta

    def encode(self, before, after):
        z_e = self.encoder(torch.cat([before, after], -1))
        z_q, _, _, indices = self.vq(z_e)
        return {"z_q": z_q, "z_e": z_e, "indices": indices}

    def forward(self, batch):
        outputs = self.encode(batch["before"], batch["after"])
        delta = self.decoder(torch.cat([batch["before"], outputs["z_q"]], -1))
        outputs["recon"] = batch["before"] + delta
        return outputs

    def compute_loss(self, batch):
        outputs = self(batch)
        recon = F.mse_loss(outputs["recon"], batch["after"])
        codebook_loss = F.mse_loss(outputs["z_q"], outputs["z_e"].detach())  # <- GS534
        commit_loss = F.mse_loss(outputs["z_e"], outputs["z_q"].detach())
        loss = recon + codebook_loss + self.beta * commit_loss
        used = outputs["indices"].unique().numel()
        return loss, {"recon": recon.item(), "codebook": codebook_loss.item(), "codes": used}

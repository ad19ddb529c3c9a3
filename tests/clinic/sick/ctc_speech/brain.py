import torch
from torch import nn


class ASRBrain:
    def __init__(self, encoder, head, hparams):
        self.encoder, self.head, self.hparams = encoder, head, hparams
        self.ctc = nn.CTCLoss(blank=0, zero_infinity=True)
        self.init_optimizers()
        self.scaler = torch.amp.GradScaler(
            "cpu", init_scale=2.0**10, enabled=hparams["auto_mix_prec"]
        )

    def init_optimizers(self):
        self.encoder_optimizer = torch.optim.Adam(
            self.encoder.parameters(), lr=self.hparams["lr_encoder"]
        )
        self.head_optimizer = torch.optim.Adadelta(self.head.parameters(), lr=self.hparams["lr"])

    def compute_forward(self, batch):
        z = self.encoder(batch["wav"])
        return self.head(z).float().log_softmax(-1)

    def compute_objectives(self, logp, batch):
        in_len = torch.full((logp.shape[0],), logp.shape[1], dtype=torch.long)
        return self.ctc(logp.transpose(0, 1), batch["tokens"], in_len, batch["token_len"])

    def check_gradients(self, loss):
        if not torch.isfinite(loss):
            return False
        params = list(self.encoder.parameters()) + list(self.head.parameters())
        nn.utils.clip_grad_norm_(
            [p for p in params if p.grad is not None], self.hparams["max_grad_norm"]
        )
        return True

    def fit_batch(self, batch):
        self.encoder_optimizer.zero_grad()
        self.head_optimizer.zero_grad()
        if self.hparams["auto_mix_prec"]:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logp = self.compute_forward(batch)
            loss = self.compute_objectives(logp, batch)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.encoder_optimizer)  # <~ GS000
            self.scaler.unscale_(self.head_optimizer)
            if self.check_gradients(loss):
                self.scaler.step(self.encoder_optimizer)  # <- GS000
                self.scaler.step(self.head_optimizer)
            self.scaler.update()
        else:
            loss = self.compute_objectives(self.compute_forward(batch), batch)
            loss.backward()
            if self.check_gradients(loss):
                self.encoder_optimizer.step()
                self.head_optimizer.step()
        return loss.item()

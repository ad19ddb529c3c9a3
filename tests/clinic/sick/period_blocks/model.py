import torch
from layers import PeriodBlock, SensorMixer
from torch import nn


class PeriodNet(nn.Module):
    def __init__(self, seq_len, pred_len, n_sensors, d_model=8, e_layers=1):
        super().__init__()
        self.pred_len = pred_len
        self.mixer = SensorMixer(n_sensors)
        self.embedding = nn.Linear(n_sensors, d_model)
        self.predict_linear = nn.Linear(seq_len, seq_len + pred_len)
        self.blocks = nn.ModuleList(PeriodBlock(d_model) for _ in range(e_layers))
        self.layer_norm = nn.LayerNorm(d_model)
        self.projection = nn.Linear(d_model, n_sensors)

    def forecast(self, x_enc):
        x_enc = self.mixer(x_enc)
        means = x_enc.mean(1, keepdim=True).detach()
        x_enc = x_enc - means
        stdev = torch.sqrt(torch.var(x_enc, dim=1, keepdim=True, unbiased=False) + 1e-5)
        x_enc /= stdev  # <- GS401

        enc_out = self.embedding(x_enc)
        enc_out = self.predict_linear(enc_out.permute(0, 2, 1)).permute(0, 2, 1)
        for block in self.blocks:
            enc_out = self.layer_norm(block(enc_out))
        dec_out = self.projection(enc_out)
        return dec_out * stdev + means

    def forward(self, x_enc):
        return self.forecast(x_enc)[:, -self.pred_len :]

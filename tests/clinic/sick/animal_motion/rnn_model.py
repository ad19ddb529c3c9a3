import torch
from torch import nn


class MotionVae(nn.Module):
    def __init__(self, config):
        super().__init__()
        features, hidden, zdims = config["num_features"], config["hidden"], config["zdims"]
        self.window = config["time_window"]
        self.encoder = nn.GRU(features, hidden, batch_first=True, bidirectional=True)
        self.mean = nn.Linear(2 * hidden, zdims)
        self.logvar = nn.Linear(2 * hidden, zdims)
        self.latent_to_hidden = nn.Linear(zdims, hidden)
        self.decoder = nn.GRU(zdims, hidden, batch_first=True)
        self.out = nn.Linear(hidden, features)

    def forward(self, x):
        _, state = self.encoder(x)
        state = torch.cat([state[0], state[1]], dim=-1)
        mean, logvar = self.mean(state), self.logvar(state)
        z = mean
        if self.training:
            z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        start = self.latent_to_hidden(z).unsqueeze(0)
        out, _ = self.decoder(z.unsqueeze(1).expand(-1, self.window, -1), start)
        return self.out(out), mean, logvar

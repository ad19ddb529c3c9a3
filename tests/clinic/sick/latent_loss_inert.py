"""Skip-GANomaly: the latent loss is in err_g, and changing its weight changes nothing."""

import torch
import torch.nn as nn

torch.manual_seed(0)


class NetD(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 16), nn.LeakyReLU(0.2))
        self.classifier = nn.Linear(16, 1)

    def forward(self, x):
        feat = self.features(x)
        return torch.sigmoid(self.classifier(feat)).squeeze(1), feat


class Skipganomaly:
    w_con, w_lat = 50.0, 1.0

    def __init__(self):
        self.netg = nn.Sequential(nn.Linear(10, 4), nn.Tanh(), nn.Linear(4, 10))
        self.netd = NetD()
        self.optimizer_g = torch.optim.Adam(self.netg.parameters(), lr=2e-4)
        self.optimizer_d = torch.optim.Adam(self.netd.parameters(), lr=2e-4)
        self.l_con, self.l_lat, self.l_bce = nn.L1Loss(), nn.MSELoss(), nn.BCELoss()

    def forward(self, x):
        self.input = x
        self.fake = self.netg(x)
        self.pred_real, self.feat_real = self.netd(self.input)
        self.pred_fake, self.feat_fake = self.netd(
            self.fake.detach()  # <- GS303
        )

    def backward_g(self):
        self.err_g_con = self.l_con(self.fake, self.input)
        self.err_g_lat = self.l_lat(self.feat_fake.detach(), self.feat_real.detach())  # <~ GS303
        self.err_g = self.w_con * self.err_g_con + self.w_lat * self.err_g_lat  # <~ GS303
        self.err_g.backward()

    def backward_d(self):
        one, zero = torch.ones_like(self.pred_real), torch.zeros_like(self.pred_fake)
        self.err_d = self.l_bce(self.pred_real, one) + self.l_bce(self.pred_fake, zero)
        self.err_d.backward()

    def optimize_params(self, x):
        self.forward(x)
        self.optimizer_g.zero_grad()
        self.backward_g()
        self.optimizer_g.step()
        self.optimizer_d.zero_grad()
        self.backward_d()
        self.optimizer_d.step()


model = Skipganomaly()
for _ in range(4):
    model.optimize_params(torch.randn(12, 10))
    print(model.err_g.item(), model.err_d.item())

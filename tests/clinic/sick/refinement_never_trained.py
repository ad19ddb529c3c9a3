"""Change detection with a GAN: the refinement branch is only trained by the adversarial loss."""

from collections import OrderedDict

import torch
from torch import nn

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.ModuleDict(
            OrderedDict(coarse=nn.Conv2d(2, 1, 3, padding=1), refine=nn.Conv2d(1, 1, 3, padding=1))
        )

    def forward(self, a, b):
        coarse = torch.sigmoid(self.net["coarse"](torch.cat([a, b], 1)))
        return coarse, torch.sigmoid(self.net["refine"](coarse.detach()))


gen = Generator()
dis = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 1), nn.Sigmoid())
opt_g, opt_d = (torch.optim.Adam(m.parameters(), lr=1e-4) for m in (gen, dis))
l_bce, l_con = nn.BCELoss(), nn.L1Loss()
for epoch in range(3):
    a, b, label = (
        torch.rand(4, 1, 8, 8),
        torch.rand(4, 1, 8, 8),
        (torch.rand(4, 1, 8, 8) > 0.5).float(),
    )
    coarse, fake = gen(a, b)
    pred_real, pred_fake = dis(label), dis(fake).detach()  # <- GS303
    err_g = 50 * l_con(coarse, label) + l_bce(pred_fake, torch.ones_like(pred_fake))  # <~ GS303
    opt_g.zero_grad()
    err_g.backward()
    opt_g.step()

    pred_fake = dis(fake.detach())
    err_d = l_bce(pred_real, torch.ones_like(pred_real)) + l_bce(
        pred_fake, torch.zeros_like(pred_fake)
    )
    opt_d.zero_grad()
    err_d.backward()
    opt_d.step()
    print(f"{epoch}: g {err_g:.4f} d {err_d:.4f}")

"""float16 autocast with a scaler that starts far too high and comes down, as it is meant to."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=100)
for _step in range(8):
    x, y = torch.randn(64, 32), torch.randint(0, 10, (64,))
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
print(scaler.get_scale())

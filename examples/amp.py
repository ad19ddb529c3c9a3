"""Mixed precision: the scale of the first step is too large for float16, and the step is skipped.

gradscope doctor examples/amp.py
gradscope backward examples/amp.py --call 2 --format table
"""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
nn.init.zeros_(model[2].weight)
nn.init.zeros_(model[2].bias)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17)
for _ in range(6):
    with torch.autocast("cpu", dtype=torch.float16):
        out = model(torch.randn(16, 4))
    loss = (out.float() - 0.35).square().mean()
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

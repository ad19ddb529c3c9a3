"""One step of one number: what torch and who watches cost before there is anything to do."""

import torch

weight = torch.ones(1, requires_grad=True)
optimizer = torch.optim.Adam([weight])
loss = weight.square().sum()
loss.backward()
optimizer.step()

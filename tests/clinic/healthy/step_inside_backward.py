import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizers = {one: torch.optim.SGD([one], lr=0.05, foreach=False) for one in model.parameters()}
schedulers = [torch.optim.lr_scheduler.StepLR(one, 3) for one in optimizers.values()]


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(step)
for _ in range(8):
    x = torch.randn(8, 4)
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    for scheduler in schedulers:
        scheduler.step()

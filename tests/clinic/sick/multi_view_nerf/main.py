import torch

from fields import RadianceField
from render import composite, sample_along_rays

CFG = {"rays": 48, "samples": 12, "views": 3, "near": 1.0, "far": 3.0, "lr": 5e-3, "steps": 10}


class Scene:
    """A coloured ball; outside of the photographs' frustum a source view shows white."""

    def __init__(self, views):
        self.view_axes = torch.nn.functional.normalize(torch.randn(views, 3), dim=-1)

    def project(self, points):
        colours = []
        for axis in self.view_axes:
            across = points - (points @ axis)[..., None] * axis
            inside = (across.norm(dim=-1, keepdim=True) < 1.2).float()
            colours.append(inside * (0.5 + 0.4 * torch.sin(3 * across)) + (1 - inside))
        return torch.stack(colours)

    def rays(self, count):
        origins = torch.tensor([0.0, 0.0, -2.0]).expand(count, 3)
        aim = torch.rand(count, 3) * 2.4 - 1.2
        aim[:, 2] = 0.0
        directions = torch.nn.functional.normalize(aim - origins, dim=-1)
        hit = aim.norm(dim=-1, keepdim=True) < 0.8
        target = torch.where(hit, 0.5 + 0.4 * torch.sin(3 * aim), torch.ones(()))
        return origins, directions, target


def psnr(mse):
    return -10 * torch.log10(mse)


def main():
    torch.manual_seed(50)
    scene = Scene(CFG["views"])
    model = RadianceField()
    optimizer = torch.optim.Adam(model.parameters(), lr=CFG["lr"])
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.98)
    for step in range(CFG["steps"]):
        origins, directions, target = scene.rays(CFG["rays"])
        sampling = CFG["near"], CFG["far"], CFG["samples"]
        points, t = sample_along_rays(origins, directions, *sampling)
        density, rgb = model(points, scene.project(points))
        colour, _ = composite(density, rgb, t)
        loss = ((colour - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 40)
        optimizer.step()
        schedule.step()
        if step % 3 == 0:
            print(f"step {step} loss {loss.item():.5f} psnr {psnr(loss.detach()).item():.2f}")


if __name__ == "__main__":
    main()

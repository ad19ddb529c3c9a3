"""Texture synthesis: optimise pixels until their feature statistics match an exemplar."""

import torch
import torch.nn.functional as F

from features import FeatureNet, gram

CONFIG = {"seed": 12, "size": 32, "rounds": 10, "tv_weight": 1e-3, "layer_weights": (1.0, 0.5)}


def exemplar(size):
    r = torch.linspace(0, 12.0, size)
    yy, xx = torch.meshgrid(r, r, indexing="ij")
    stripes = torch.sin(xx + 0.5 * yy)
    dots = (torch.sin(2 * xx) * torch.sin(2 * yy) > 0.3).float()
    return torch.stack([0.5 + 0.4 * stripes, 0.3 + 0.5 * dots, 0.5 - 0.3 * stripes * dots])[None]


class TextureLoss:
    def __init__(self, net, image, layer_weights, tv_weight):
        self.net, self.layer_weights, self.tv_weight = net, layer_weights, tv_weight
        self.targets = [gram(f).detach() for f in net(image)]

    def __call__(self, image):
        style = sum(
            w * F.mse_loss(gram(f), t)
            for w, f, t in zip(self.layer_weights, self.net(image), self.targets)
        )
        tv = (image[..., 1:] - image[..., :-1]).abs().mean() + (
            image[..., 1:, :] - image[..., :-1, :]
        ).abs().mean()
        return style + self.tv_weight * tv


def main(cfg=CONFIG):
    gen = torch.Generator().manual_seed(cfg["seed"])
    net = FeatureNet(cfg["seed"])
    criterion = TextureLoss(net, exemplar(cfg["size"]), cfg["layer_weights"], cfg["tv_weight"])
    image = torch.rand(1, 3, cfg["size"], cfg["size"], generator=gen).requires_grad_(True)
    optimizer = torch.optim.LBFGS(
        [image], lr=0.8, max_iter=4, history_size=10, line_search_fn="strong_wolfe"
    )

    for rnd in range(1, cfg["rounds"] + 1):

        def closure():
            optimizer.zero_grad()
            loss = criterion(image)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        with torch.no_grad():
            image.clamp_(0.0, 1.0)
        if rnd % 5 == 0:
            print(f"round {rnd:3d}  loss {loss.item():.6f}")
    return image.detach()


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F
from layers import BayesNet

SETTINGS = {"n": 128, "hidden": 16, "lr": 2e-2, "epochs": 8, "batch": 32, "noise": 0.3}


def make_data(n, noise):
    x = torch.rand(n, 1) * 4 - 2
    return x, torch.sin(2 * x) + noise * torch.randn(n, 1)


class ELBO:
    def __init__(self, n, noise):
        self.n, self.noise = n, noise

    def __call__(self, model, x, y):
        nll = 0.5 * F.mse_loss(model(x), y) / self.noise**2
        kl = model.kl() / self.n
        return nll + kl, nll.item(), kl.item()


@torch.no_grad()
def spread(model, x, samples=20):
    return torch.stack([model(x) for _ in range(samples)]).std(0).mean().item()


def main(cfg=SETTINGS):
    torch.manual_seed(14)
    x, y = make_data(cfg["n"], cfg["noise"])
    model = BayesNet(1, cfg["hidden"], 1)
    criterion = ELBO(cfg["n"], cfg["noise"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    far = torch.linspace(4, 6, 20).view(-1, 1)
    for epoch in range(cfg["epochs"]):
        for rows in torch.randperm(cfg["n"]).split(cfg["batch"]):
            loss, nll, kl = criterion(model, x[rows], y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 0:
            print(f"epoch {epoch} nll {nll:.3f} kl {kl:.3f} spread far {spread(model, far):.4f}")


if __name__ == "__main__":
    main()

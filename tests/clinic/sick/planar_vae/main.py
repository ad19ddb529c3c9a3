import torch

from vae import FlowVAE, elbo_loss

CONFIG = dict(data=32, epochs=1, batch=50, lr=2e-3)


def make_patterns(n, seed):
    """Binary strips, lit inside an interval with random ends, with some flipped pixels."""
    g = torch.Generator().manual_seed(seed)
    ends = torch.rand(n, 2, generator=g).sort(dim=1).values * 32
    pos = torch.arange(32)[None]
    x = ((pos >= ends[:, :1]) & (pos <= ends[:, 1:])).float()
    flip = torch.rand(n, 32, generator=g) < 0.03
    return torch.where(flip, 1 - x, x)


def main(cfg=CONFIG):
    torch.manual_seed(0)
    train, valid = make_patterns(400, 1), make_patterns(100, 2)
    model = FlowVAE(cfg["data"])
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        sums, n = [0.0, 0.0], 0
        for x in train[torch.randperm(len(train))].split(cfg["batch"]):
            loss, rec, kl, _ = elbo_loss(model, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums, n = [sums[0] + rec, sums[1] + kl], n + 1
        with torch.no_grad():
            _, rec, _, z = elbo_loss(model, valid)
        print(
            f"epoch {epoch}  rec {sums[0] / n:.3f}  kl {sums[1] / n:.3f}  "
            f"valid rec {rec:.3f}  std of z {z.std().item():.3f}"
        )


if __name__ == "__main__":
    main()

import torch
from conditions import Boundary, Initial, Residual
from network import Field
from weighting import GradientBalance


def main(epochs=12, lr=2e-3):
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(4)
    model = Field()
    conditions = [Residual(64, generator), Initial(32, generator), Boundary(32, generator)]
    balance = GradientBalance(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        optimizer.zero_grad()
        losses = {c.name: c.loss(model) for c in conditions}
        weights = balance.update(losses)
        loss = sum(weights[name] * value for name, value in losses.items())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 4 == 0:
            terms = " ".join(f"{k} {v.item():.4f} (x{weights[k]:.2f})" for k, v in losses.items())
            print(f"epoch {epoch:2d} loss {loss.item():.4f} | {terms}")


if __name__ == "__main__":
    main()

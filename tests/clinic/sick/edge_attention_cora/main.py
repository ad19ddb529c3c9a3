import torch
import torch.nn.functional as F
from graph import citation_graph
from layers import GAT

ARGS = {"epochs": 20, "lr": 0.02, "weight_decay": 0.0, "hidden": 6, "heads": 2, "patience": 8}


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean().item()


def main(args=ARGS):
    torch.manual_seed(72)
    features, labels, edge, train_rows, valid_rows = citation_graph()
    model = GAT(features.size(1), args["hidden"], int(labels.max()) + 1, args["heads"])
    optimizer = torch.optim.Adam(
        model.parameters(), lr=args["lr"], weight_decay=args["weight_decay"]
    )
    best, waited = float("inf"), 0
    for epoch in range(args["epochs"]):
        model.train()
        optimizer.zero_grad()
        output = model(features, edge)
        loss = F.nll_loss(output[train_rows], labels[train_rows])
        loss.backward()
        optimizer.step()

        model.eval()
        with torch.no_grad():
            output = model(features, edge)
        valid_loss = F.nll_loss(output[valid_rows], labels[valid_rows]).item()
        if epoch % 5 == 0:
            score = accuracy(output[valid_rows], labels[valid_rows])
            print(f"epoch {epoch:2d} loss {loss.item():.4f} val {valid_loss:.4f} acc {score:.3f}")
        best, waited = (valid_loss, 0) if valid_loss < best else (best, waited + 1)
        if waited == args["patience"]:
            break


if __name__ == "__main__":
    main()

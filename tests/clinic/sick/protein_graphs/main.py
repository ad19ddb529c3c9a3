"""Graph classification with average readout."""

import argparse

import torch
import torch.nn.functional as F
from data import make_graphs
from gcn import GraphClassifier


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agg_hidden", type=int, default=24)
    parser.add_argument("--fc_hidden", type=int, default=16)
    parser.add_argument("--n_agg_layer", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=5e-3)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(3)
    adj, x, mask, y = make_graphs(224)
    model = GraphClassifier(x.shape[-1], args.n_agg_layer, args.agg_hidden, args.fc_hidden, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.5)
    train = torch.arange(160)
    for epoch in range(args.epochs):
        model.train()
        order = train[torch.randperm(len(train))]
        total = 0.0
        for idx in order.split(args.batch_size):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(adj[idx], x[idx], mask[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            pred = model(adj[160:], x[160:], mask[160:]).argmax(1)
        accuracy = (pred == y[160:]).float().mean().item()
        print(f"epoch {epoch}: loss {total / len(train):.4f} test acc {accuracy:.3f}")


if __name__ == "__main__":
    main()

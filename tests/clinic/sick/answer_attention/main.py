import argparse

import torch
from torch import nn, optim

from data import Questions
from layers import QuestionEncoder


def get_args():
    parser = argparse.ArgumentParser(description="Learns entity representations of questions")
    parser.add_argument("--embed_dim", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=12)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--weight_decay", type=float, default=0.0)
    parser.add_argument("--clip_gradient", type=float, default=0.6)
    return parser.parse_args()


def validate(model, questions):
    model.eval()
    with torch.no_grad():
        question, _, entity = questions.batch(64)
        hit = (questions.nearest(model(question)) == entity).float().mean()
    model.train()
    return hit.item()


def main():
    args = get_args()
    torch.manual_seed(4)
    questions = Questions()
    model = QuestionEncoder(questions.vocabulary, args.embed_dim, args.hidden, 6)
    optimizer = optim.Adam(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    criterion = nn.MSELoss()
    for epoch in range(args.epochs):
        total = 0.0
        for _ in range(args.batches):
            question, target, _ = questions.batch(args.batch_size)
            optimizer.zero_grad()
            loss = criterion(model(question), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip_gradient)
            optimizer.step()
            total += loss.item()
        print(
            f"epoch {epoch} loss {total / args.batches:.4f} hits {validate(model, questions):.3f}"
        )


if __name__ == "__main__":
    main()

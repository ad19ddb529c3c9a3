import torch
import torch.nn.functional as F
from memory import OptimizerInBackward
from model import ReviewModel, Reviews

CONFIG = {"lr": 0.05, "max_norm": 0.5, "epochs": 3, "batch_size": 16, "n_train": 160}


def evaluate(model, data):
    with torch.no_grad():
        return F.l1_loss(model(data.words), data.ratings).item()


def main(cfg=CONFIG):
    torch.manual_seed(21)
    train, valid = Reviews(cfg["n_train"], seed=1), Reviews(64, seed=2)
    model = ReviewModel()
    updates = OptimizerInBackward(model, lr=cfg["lr"])
    for epoch in range(cfg["epochs"]):
        worst = 0.0
        for words, ratings in train.batches(cfg["batch_size"]):
            loss = F.mse_loss(model(words), ratings)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), cfg["max_norm"])  # <- GS506
            worst = max(worst, loss.item())
        updates.next_epoch()
        print(f"epoch {epoch} worst batch {worst:.3f} validation {evaluate(model, valid):.4f}")


if __name__ == "__main__":
    main()

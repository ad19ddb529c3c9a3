import torch
from torch.utils.data import DataLoader

from data import SyntheticCrystals, collate
from task import RegressionTask

CONFIG = {
    "task_keys": ["energy_form", "band_gap"],
    "batch_size": 32,
    "lr": 3e-3,
    "epochs": 4,
    "seed": 21,
}


def fit_normalizers(dataset, keys):
    values = {key: torch.tensor([item["targets"][key] for item in dataset.items]) for key in keys}
    return {key: (v.mean().item(), v.std().item()) for key, v in values.items()}


def r2_scores(task, batch, keys):
    out, scores = task.predict(batch), {}
    for k in keys:
        p, t = out[k].flatten(), batch["targets"][k].flatten()
        scores[k] = 1 - ((p - t) ** 2).sum().item() / ((t - t.mean()) ** 2).sum().item()
    return scores


def main(cfg):
    torch.manual_seed(cfg["seed"])
    keys = cfg["task_keys"]
    train, valid = SyntheticCrystals(96, seed=1), SyntheticCrystals(48, seed=2)
    train_loader = DataLoader(
        train.items, batch_size=cfg["batch_size"], shuffle=True, collate_fn=collate
    )
    valid_batch = collate(valid.items)
    task = RegressionTask(keys, cfg["lr"], fit_normalizers(train, keys))
    for epoch in range(1, cfg["epochs"] + 1):
        sums = {k: 0.0 for k in keys}
        for batch in train_loader:
            for k, v in task.training_step(batch).items():
                sums[k] += v / len(train_loader)
        if epoch % 2 == 0:
            losses = "  ".join(f"{k} {v:.4f}" for k, v in sums.items())
            scores = "  ".join(
                f"{k} R2 {v:+.3f}" for k, v in r2_scores(task, valid_batch, keys).items()
            )
            print(f"epoch {epoch:2d}  train {losses}  |  valid {scores}")


if __name__ == "__main__":
    main(CONFIG)

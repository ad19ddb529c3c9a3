import torch

from data import UserTasks
from melu import MetaLearner

CONFIG = {"features": 8, "users_per_batch": 4, "batches": 8, "lr": 5e-3, "local_lr": 0.05}


def evaluate(learner, tasks, users=8):
    losses = []
    for support, query in tasks.batch(users):
        loss = learner.query_loss(support, query)
        learner.restore()
        losses.append(loss.item())
    return sum(losses) / users


def main():
    torch.manual_seed(0)
    tasks, held_out = UserTasks(seed=1), UserTasks(seed=2)
    learner = MetaLearner(CONFIG["features"], CONFIG["local_lr"])
    optimizer = torch.optim.Adam(learner.parameters(), lr=CONFIG["lr"])
    for step in range(CONFIG["batches"]):
        optimizer.zero_grad()
        total = 0.0
        for support, query in tasks.batch(CONFIG["users_per_batch"]):
            loss = learner.query_loss(support, query) / CONFIG["users_per_batch"]
            loss.backward()
            learner.restore()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 5.0)
        optimizer.step()
        print(f"batch {step} query loss {total:.4f}")
    print(f"held-out users: {evaluate(learner, held_out):.4f}")
    print({name: round(size.item(), 4) for name, size in learner.step_sizes.items()})


if __name__ == "__main__":
    main()

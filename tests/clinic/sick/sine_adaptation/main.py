import torch
from meta import MAML, Regressor
from tasks import TaskSampler

CONFIG = {"meta_steps": 20, "tasks_per_step": 4, "inner_lr": 0.02, "meta_lr": 3e-3, "seed": 30}


def main(cfg=CONFIG):
    torch.manual_seed(cfg["seed"])
    sampler = TaskSampler(seed=cfg["seed"])
    maml = MAML(Regressor(), inner_lr=cfg["inner_lr"], meta_lr=cfg["meta_lr"])
    probe = torch.linspace(-3, 3, 5).view(-1, 1)
    history = []
    for step in range(cfg["meta_steps"]):
        history.append(maml.meta_train_step(sampler.batch(cfg["tasks_per_step"])))
        if step % 5 == 0:
            recent = sum(history[-5:]) / len(history[-5:])
            print(f"meta step {step:2d} query loss {recent:.4f}")
    values = " ".join(f"{v:.3f}" for v in maml.initial_prediction(probe).flatten().tolist())
    print(f"before adaptation: {values}")


if __name__ == "__main__":
    main()

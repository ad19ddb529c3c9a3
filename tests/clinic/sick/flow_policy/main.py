"""Group-relative fine-tuning of a flow policy with fp32 master weights."""

import torch
from trainer import GroupPolicyTrainer

CONFIG = {
    "prompts": 8,
    "group": 8,
    "flow_steps": 4,
    "inner_epochs": 3,
    "iterations": 3,
    "sigma": 0.5,
    "clip": 0.2,
    "lr": 3e-3,
}


def main():
    torch.manual_seed(13)
    trainer = GroupPolicyTrainer(CONFIG)
    for it in range(CONFIG["iterations"]):
        cond, path, logps, advantage, score = trainer.rollout()
        drift = trainer.optimize(cond, path, logps, advantage)
        print(f"iter {it}: reward {score:.3f} ratio drift {sum(drift) / len(drift):.5f}")


if __name__ == "__main__":
    main()

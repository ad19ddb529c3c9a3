"""Behaviour learning in imagination with a frozen latent world model."""

import torch
from behaviour import BehaviourLearner
from models import ActionModel, LatentModel, ValueModel

CONFIG = {
    "actor_lr": 1e-3,
    "value_lr": 2e-3,
    "horizon": 5,
    "gamma": 0.97,
    "lam": 0.95,
    "clip": 100.0,
    "updates": 8,
    "batch": 24,
}


def main():
    torch.manual_seed(4)
    world = LatentModel().requires_grad_(False)
    learner = BehaviourLearner(world, ActionModel(), ValueModel(), CONFIG)
    for update in range(CONFIG["updates"]):
        state = torch.tanh(torch.randn(CONFIG["batch"], 12))
        belief = torch.tanh(torch.randn(CONFIG["batch"], 32))
        value_loss, actor_loss = learner.update(state, belief)
        print(f"update {update}: value {value_loss:.4f} actor {actor_loss:.4f}")


if __name__ == "__main__":
    main()

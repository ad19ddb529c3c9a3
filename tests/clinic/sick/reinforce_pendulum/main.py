import random

import numpy as np
import torch

from agent import Reinforce
from env import InvertedPendulum

CONFIG = {
    "episodes": 20,
    "lr": 2e-3,
    "gamma": 0.99,
    "seed": 4,
    "log_every": 5,
}


def run_episode(env, agent):
    obs, done, score = env.reset(), False, 0.0
    while not done:
        action = agent.sample_action(obs)
        obs, reward, terminated, truncated = env.step(action)
        agent.rewards.append(reward)
        score += reward
        done = terminated or truncated
    return score


def main(cfg):
    random.seed(cfg["seed"])
    np.random.seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    env = InvertedPendulum(seed=cfg["seed"])
    agent = Reinforce(obs_dim=4, action_dim=1, lr=cfg["lr"], gamma=cfg["gamma"])
    scores, losses = [], []
    for episode in range(1, cfg["episodes"] + 1):
        scores.append(run_episode(env, agent))
        losses.append(agent.update())
        if episode % cfg["log_every"] == 0:
            k = cfg["log_every"]
            print(
                f"episode {episode:4d}  avg reward {np.mean(scores[-k:]):6.1f}  "
                f"avg loss {np.mean(losses[-k:]):9.2f}"
            )


if __name__ == "__main__":
    main(CONFIG)

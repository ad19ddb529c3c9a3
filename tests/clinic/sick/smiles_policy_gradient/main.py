import random

import torch

from data import GeneratorData
from generator import CharGenerator
from reinforcement import Reinforcement

CONFIG = {
    "pretrain_steps": 30,
    "rl_steps": 4,
    "n_batch": 6,
    "gamma": 0.97,
    "grad_clipping": 5.0,
    "seed": 7,
}


def pretrain(generator, data, steps, rng):
    running = 0.0
    for step in range(1, steps + 1):
        loss = generator.sequence_loss(*data.random_training_set(rng))
        generator.optimizer.zero_grad()
        loss.backward()
        generator.optimizer.step()
        running += loss.item()
        if step % 10 == 0:
            print(f"pretrain {step:4d}  loss {running / 10:.3f}")
            running = 0.0


def fluorine_reward(smiles):
    """Share of fluorinated carbons among the atoms of the string."""
    atoms = sum(c in "CNOFc" for c in smiles)
    return 10.0 * smiles.count("F") / max(1, atoms)


def main(cfg):
    torch.manual_seed(cfg["seed"])
    rng = random.Random(cfg["seed"])
    data = GeneratorData()
    generator = CharGenerator(len(data.alphabet))
    pretrain(generator, data, cfg["pretrain_steps"], rng)
    rl = Reinforcement(generator, fluorine_reward)
    rewards = []
    for step in range(1, cfg["rl_steps"] + 1):
        reward, loss = rl.policy_gradient(data, cfg["n_batch"], cfg["gamma"], cfg["grad_clipping"])
        rewards.append(reward)
        if step % 2 == 0:
            print(f"rl {step:3d}  reward {sum(rewards[-2:]) / 2:.3f}  loss {loss:.3f}")


if __name__ == "__main__":
    main(CONFIG)

import torch
import torch.nn.functional as F

from env import Rendezvous
from policy import QMIX

CONFIG = {
    "hidden": 32,
    "lr": 3e-3,
    "gamma": 0.95,
    "grad_clip": 10.0,
    "target_update_cycle": 5,
    "train_steps": 20,
    "games_per_step": 16,
    "buffer_size": 512,
    "batch_size": 24,
    "eps_start": 1.0,
    "eps_end": 0.05,
    "eps_steps": 15,
    "seed": 0,
}


@torch.no_grad()
def rollout(env, agent, eps):
    obs, state = env.reset()
    h = torch.zeros(env.batch * env.n_agents, agent.cfg["hidden"])
    data = {"obs": [obs], "state": [state], "actions": [], "reward": []}
    for _ in range(env.horizon):
        q, h = agent.eval_drqn_net(obs.reshape(env.batch * env.n_agents, -1), h)
        greedy = q.argmax(1).view(env.batch, env.n_agents)
        actions = torch.where(
            torch.rand(greedy.shape) < eps, torch.randint(0, env.n_actions, greedy.shape), greedy
        )
        (obs, state), reward = env.step(actions)
        for key, val in zip(data, (obs, state, actions, reward)):
            data[key].append(val)
    batch = {k: torch.stack(v, dim=1) for k, v in data.items()}
    batch["done"] = F.pad(torch.ones(env.batch, 1), (env.horizon - 1, 0))
    return batch


def main(cfg):
    torch.manual_seed(cfg["seed"])
    env = Rendezvous(cfg["games_per_step"])
    agent, buffer = QMIX(env, cfg), None
    for step in range(cfg["train_steps"]):
        eps = max(cfg["eps_end"], cfg["eps_start"] - step / cfg["eps_steps"])
        new = rollout(env, agent, eps)
        buffer = (
            new
            if buffer is None
            else {k: torch.cat([buffer[k], new[k]])[-cfg["buffer_size"] :] for k in new}
        )
        idx = torch.randint(0, len(buffer["reward"]), (cfg["batch_size"],))
        loss, q_mean = agent.learn({k: v[idx] for k, v in buffer.items()}, step)
        if (step + 1) % 5 == 0:
            score = rollout(env, agent, 0.0)["reward"].sum(1).mean().item()
            print(
                f"step {step + 1:4d}  eps {eps:.2f}  loss {loss:.4f}  "
                f"q_tot {q_mean:+.3f}  greedy return {score:.3f}"
            )


if __name__ == "__main__":
    main(CONFIG)

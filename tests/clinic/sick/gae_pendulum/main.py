import torch

from agent import A2C
from env import VectorPendulum

N_ENVS = 6
N_UPDATES = 12
N_STEPS = 16
GAMMA = 0.99
LAM = 0.95
ENT_COEF = 0.01


def collect(agent, env, obs):
    rewards, log_probs, values, entropies, masks = [], [], [], [], []
    for _ in range(N_STEPS):
        actions, log_prob, value, entropy = agent.select_action(obs)
        obs, reward, done = env.step(actions)
        rewards.append(reward)
        log_probs.append(log_prob)
        values.append(value)
        entropies.append(entropy)
        masks.append((~done).float())
    with torch.no_grad():
        last_value = agent.critic(obs).squeeze(-1)
    stacked = [torch.stack(part) for part in (rewards, log_probs, values, entropies, masks)]
    return obs, last_value, stacked


def main():
    torch.manual_seed(0)
    env = VectorPendulum(N_ENVS, seed=3)
    agent = A2C(3, 3, critic_lr=5e-3, actor_lr=1e-3, n_envs=N_ENVS)
    obs = env.reset()
    for update in range(N_UPDATES):
        obs, last_value, (rewards, log_probs, values, entropy, masks) = collect(agent, env, obs)
        critic_loss, actor_loss = agent.get_losses(
            rewards, log_probs, values, last_value, entropy, masks, GAMMA, LAM, ENT_COEF
        )
        agent.update_parameters(critic_loss, actor_loss)
        print(
            f"update {update:2d} reward {rewards.mean().item():+.3f} "
            f"critic {critic_loss.item():.3f} value {values.mean().item():+.3f}"
        )


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F


class Reinforcement:
    def __init__(self, generator, get_reward):
        self.generator = generator
        self.get_reward = get_reward

    def policy_gradient(self, data, n_batch=10, gamma=0.97, grad_clipping=None):
        rl_loss = torch.zeros(1, requires_grad=True)  # <~ GS000
        total_reward = 0.0
        self.generator.optimizer.zero_grad()
        for _ in range(n_batch):
            trajectory = self.generator.evaluate(data)
            reward = self.get_reward(trajectory[1:-1])
            total_reward += reward
            discounted_reward = reward
            inputs = data.char_tensor(trajectory)
            hidden = self.generator.init_hidden()
            for p in range(len(trajectory) - 1):
                output, hidden = self.generator(inputs[p], hidden)
                log_probs = F.log_softmax(output, dim=1)
                top_i = inputs[p + 1]
                rl_loss = rl_loss - log_probs[0, top_i].item() * discounted_reward  # <- GS000
                discounted_reward = discounted_reward * gamma
        rl_loss = rl_loss / n_batch
        rl_loss.backward()
        if grad_clipping is not None:
            torch.nn.utils.clip_grad_norm_(self.generator.parameters(), grad_clipping)
        self.generator.optimizer.step()
        return total_reward / n_batch, rl_loss.item()

"""Pixel control: the critic trains the encoder, the actor reads its features only."""

import torch
import torch.nn.functional as F
from torch import nn

SIZE = 8


class PixelEncoder(nn.Module):
    def __init__(self, features=24):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, stride=2, padding=1)
        self.fc = nn.Linear(8 * 16, features)
        self.norm = nn.LayerNorm(features)

    def forward(self, image):
        hidden = F.relu(self.conv(image))
        return torch.tanh(self.norm(self.fc(hidden.flatten(1))))


class Critic(nn.Module):
    def __init__(self, encoder, actions, features=24):
        super().__init__()
        self.encoder = encoder
        self.q1 = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, actions))
        self.q2 = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, actions))

    def forward(self, image):
        features = self.encoder(image)
        return self.q1(features), self.q2(features)


class Actor(nn.Module):
    def __init__(self, encoder, actions, features=24):
        super().__init__()
        self.encoder = encoder
        self.policy = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, actions))

    def forward(self, image, detach_encoder=True):
        features = self.encoder(image)
        if detach_encoder:
            features = features.detach()
        return F.log_softmax(self.policy(features), dim=-1)


def render(position):
    image = 0.3 * torch.randn(len(position), 1, SIZE, SIZE)
    image[torch.arange(len(position)), 0, SIZE // 2, position] = 1.0
    return image


def env_step(position, action):
    moved = (position + action - 1).clamp(0, SIZE - 1)
    reward = (moved == SIZE // 2).float() - 0.2 * (moved - SIZE // 2).abs().float()
    return moved, reward


class Agent:
    def __init__(self, actions=3, gamma=0.6, alpha=0.05, hard_update_every=5):
        self.critic = Critic(PixelEncoder(), actions)
        self.actor = Actor(self.critic.encoder, actions)
        self.target = Critic(PixelEncoder(), actions)
        self.target.load_state_dict(self.critic.state_dict())
        self.target.requires_grad_(False)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-2)
        self.actor_opt = torch.optim.Adam(self.actor.policy.parameters(), lr=1e-2)
        self.gamma, self.alpha = gamma, alpha
        self.hard_update_every, self.updates = hard_update_every, 0

    def update(self, image, action, reward, next_image):
        with torch.no_grad():
            log_pi = self.actor(next_image)
            q = torch.min(*self.target(next_image)) - self.alpha * log_pi
            target = reward + self.gamma * (log_pi.exp() * q).sum(dim=-1)
        q1, q2 = self.critic(image)
        index = action.unsqueeze(1)
        critic_loss = F.mse_loss(q1.gather(1, index).squeeze(1), target)
        critic_loss = critic_loss + F.mse_loss(q2.gather(1, index).squeeze(1), target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        log_pi = self.actor(image)
        with torch.no_grad():
            q = torch.min(*self.critic(image))
        actor_loss = (log_pi.exp() * (self.alpha * log_pi - q)).sum(dim=-1).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()

        self.updates += 1
        if self.updates % self.hard_update_every == 0:
            self.target.load_state_dict(self.critic.state_dict())
        return critic_loss.item(), actor_loss.item()


def main():
    torch.manual_seed(2)
    agent = Agent()
    memory = []
    position = torch.randint(0, SIZE, (48,))
    for step in range(40):
        image = render(position)
        with torch.no_grad():
            action = torch.distributions.Categorical(logits=agent.actor(image)).sample()
        next_position, reward = env_step(position, action)
        memory.append((image, action, reward, render(next_position)))
        position = next_position if step % 3 else torch.randint(0, SIZE, (48,))
        picks = torch.randint(0, len(memory), (4,)).tolist()
        batch = [torch.cat(parts) for parts in zip(*(memory[i] for i in picks), strict=True)]
        losses = agent.update(*batch)
        if step % 10 == 9:
            print(f"step {step} critic {losses[0]:.3f} actor {losses[1]:.3f}")
    with torch.no_grad():
        greedy = agent.actor(render(torch.arange(SIZE))).argmax(dim=-1) - 1
    print("greedy moves by column", greedy.tolist())


if __name__ == "__main__":
    main()

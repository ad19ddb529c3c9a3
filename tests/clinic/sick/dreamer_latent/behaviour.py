import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_


def lambda_returns(rewards, values, gamma, lam):
    returns = [values[-1]]
    for t in reversed(range(len(rewards))):
        mixed = (1.0 - lam) * values[t + 1] + lam * returns[0]
        returns.insert(0, rewards[t] + gamma * mixed)
    return torch.stack(returns[:-1])


class BehaviourLearner:
    def __init__(self, world, actor, value, cfg):
        self.world, self.actor, self.value, self.cfg = world, actor, value, cfg
        self.actor_opt = torch.optim.Adam(actor.parameters(), lr=cfg["actor_lr"])
        self.value_opt = torch.optim.Adam(value.parameters(), lr=cfg["value_lr"])

    def imagine(self, state, belief):
        states, beliefs = [state], [belief]
        for _ in range(self.cfg["horizon"]):
            action = self.actor(states[-1].detach(), beliefs[-1].detach())
            state, belief = self.world.imagine_step(states[-1], beliefs[-1], action)
            states.append(state)
            beliefs.append(belief)
        return states, beliefs

    def update(self, state, belief):
        states, beliefs = self.imagine(state, belief)
        rewards = [
            self.world.predict_reward(s, b) for s, b in zip(states[1:], beliefs[1:], strict=True)
        ]
        values = [self.value(s, b) for s, b in zip(states, beliefs, strict=True)]
        targets = lambda_returns(rewards, values, self.cfg["gamma"], self.cfg["lam"])

        predicted = self.value(
            torch.stack(states[:-1]).detach(), torch.stack(beliefs[:-1]).detach()
        )
        value_loss = F.mse_loss(predicted, targets.detach())
        self.value_opt.zero_grad()
        value_loss.backward()
        clip_grad_norm_(self.value.parameters(), self.cfg["clip"])
        self.value_opt.step()  # <- GS401

        actor_loss = -targets.mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()  # <~ GS401
        clip_grad_norm_(self.actor.parameters(), self.cfg["clip"])
        self.actor_opt.step()
        return value_loss.item(), actor_loss.item()

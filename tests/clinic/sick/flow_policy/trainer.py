import torch
from policy import GaussianStep, VelocityNet


class GroupPolicyTrainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.policy = VelocityNet()
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=cfg["lr"])
        self.kernel = GaussianStep(1.0 / cfg["flow_steps"], cfg["sigma"])
        self.goal = torch.randn(6, 4)

    def autocast(self):
        return torch.autocast("cpu", dtype=torch.bfloat16)  # <~ GS516

    def reward(self, sample, cond):
        return -(sample - cond @ self.goal).square().mean(1)

    @torch.no_grad()
    def rollout(self):
        cfg = self.cfg
        cond = torch.randn(cfg["prompts"], 6).repeat_interleave(cfg["group"], 0)
        x = torch.randn(len(cond), 4)
        path, logps = [x], []
        with self.autocast():
            for k in range(cfg["flow_steps"]):
                t = torch.full((len(x), 1), k / cfg["flow_steps"])
                mean = self.kernel.mean(self.policy(x, t, cond), x)
                noise = torch.randn_like(x) * cfg["sigma"] * self.kernel.step_size**0.5
                x = mean + noise
                path.append(x)
                logps.append(self.kernel.log_prob(x, mean))
        scores = self.reward(x, cond).view(cfg["prompts"], cfg["group"])
        advantage = (scores - scores.mean(1, keepdim=True)) / (scores.std(1, keepdim=True) + 1e-4)
        return cond, path, logps, advantage.flatten(), scores.mean().item()

    def optimize(self, cond, path, logps, advantage):
        history = []
        with self.autocast():  # <- GS516
            for _ in range(self.cfg["inner_epochs"]):
                for k in range(self.cfg["flow_steps"]):
                    t = torch.full((len(cond), 1), k / self.cfg["flow_steps"])
                    velocity = self.policy(path[k], t, cond)
                    mean = self.kernel.mean(velocity, path[k])
                    ratio = (self.kernel.log_prob(path[k + 1], mean) - logps[k]).exp()
                    clipped = ratio.clamp(1.0 - self.cfg["clip"], 1.0 + self.cfg["clip"])
                    loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
                    self.optimizer.zero_grad()
                    loss.backward()
                    torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0)
                    self.optimizer.step()
                    history.append((ratio - 1.0).abs().mean().item())
        return history

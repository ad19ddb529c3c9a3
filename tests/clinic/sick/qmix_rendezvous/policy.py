import torch
import torch.nn.functional as F

from networks import DRQN, QMixNet


class QMIX:
    def __init__(self, env, cfg):
        self.env, self.cfg = env, cfg
        self.eval_drqn_net = DRQN(env.obs_dim, env.n_actions, cfg["hidden"])
        self.target_drqn_net = DRQN(env.obs_dim, env.n_actions, cfg["hidden"])
        self.eval_qmix_net = QMixNet(env.n_agents, env.state_dim)
        self.target_qmix_net = QMixNet(env.n_agents, env.state_dim)
        self.update_targets()
        self.params = [*self.eval_drqn_net.parameters(), *self.eval_qmix_net.parameters()]
        self.optimizer = torch.optim.Adam(self.params, lr=cfg["lr"])

    def update_targets(self):
        self.target_drqn_net.load_state_dict(self.eval_drqn_net.state_dict())
        self.target_qmix_net.load_state_dict(self.target_qmix_net.state_dict())  # <- GS546

    def q_values(self, net, obs):
        b, t, n, _ = obs.shape
        h, out = torch.zeros(b * n, self.cfg["hidden"]), []
        for step in range(t):
            q, h = net(obs[:, step].reshape(b * n, -1), h)
            out.append(q.view(b, n, -1))
        return torch.stack(out, dim=1)

    def learn(self, batch, train_step):
        if train_step > 0 and train_step % self.cfg["target_update_cycle"] == 0:
            self.update_targets()
        q_all = self.q_values(self.eval_drqn_net, batch["obs"][:, :-1])
        q_taken = q_all.gather(3, batch["actions"].unsqueeze(-1)).squeeze(-1)
        q_tot = self.eval_qmix_net(q_taken, batch["state"][:, :-1])
        with torch.no_grad():
            q_next = self.q_values(self.target_drqn_net, batch["obs"])[:, 1:].max(dim=3)[0]
            q_tot_next = self.target_qmix_net(q_next, batch["state"][:, 1:])
            target = batch["reward"] + self.cfg["gamma"] * (1 - batch["done"]) * q_tot_next
        loss = F.mse_loss(q_tot, target)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.params, self.cfg["grad_clip"])
        self.optimizer.step()
        return loss.item(), q_tot.mean().item()

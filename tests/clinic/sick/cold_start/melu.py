from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class PreferenceEstimator(nn.Module):
    def __init__(self, features, hidden=24):
        super().__init__()
        self.item_emb = nn.Linear(features, hidden)
        self.fc1 = nn.Linear(hidden, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.linear_out = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.relu(self.item_emb(x))
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.linear_out(x).squeeze(-1)


class MetaLearner(nn.Module):
    """Adapts the decision layers to a user with learned step sizes."""

    local_layers = ("fc1", "fc2", "linear_out")

    def __init__(self, features, local_lr):
        super().__init__()
        self.model = PreferenceEstimator(features)
        self.keep_weight = None
        self.step_sizes = nn.ParameterDict()
        for name in self.local_layers:
            self.step_sizes[name] = nn.Parameter(torch.tensor(local_lr))

    def adapt(self, support_x, support_y):
        loss = F.mse_loss(self.model(support_x), support_y)
        names = [name for name, _ in self.model.named_parameters()]
        grads = torch.autograd.grad(loss, list(self.model.parameters()), create_graph=True)
        fast = OrderedDict()
        for name, grad in zip(names, grads):
            weight, layer = self.model.get_parameter(name), name.split(".")[0]
            if layer in self.local_layers:
                fast[name] = weight - self.step_sizes[layer] * grad
            else:
                fast[name] = weight
        return fast

    def query_loss(self, support, query):
        query_x, query_y = query
        fast = self.adapt(*support)
        self.keep_weight = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(fast)  # <- GS303
        return F.mse_loss(self.model(query_x), query_y)

    def restore(self):
        self.model.load_state_dict(self.keep_weight)

import torch
from torch import nn


class SlotAttention(nn.Module):
    def __init__(self, num_slots, dim, iterations=2, eps=1e-6):
        super().__init__()
        self.num_slots, self.iterations, self.eps = num_slots, iterations, eps
        self.scale = dim**-0.5
        self.norm_inputs = nn.LayerNorm(dim)
        self.norm_slots = nn.LayerNorm(dim)
        self.norm_mlp = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_k = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)
        self.gru = nn.GRUCell(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

        slots_mu = nn.init.xavier_uniform_(torch.zeros(1, 1, dim))
        slots_log_sigma = nn.init.xavier_uniform_(torch.zeros(1, 1, dim))
        self.register_buffer("slots_mu", slots_mu)  # <- GS331
        self.register_buffer("slots_log_sigma", slots_log_sigma)  # <~ GS331

    def forward(self, inputs):
        batch, _, dim = inputs.shape
        inputs = self.norm_inputs(inputs)
        k, v = self.to_k(inputs), self.to_v(inputs)
        noise = torch.randn(batch, self.num_slots, dim)
        slots = self.slots_mu + self.slots_log_sigma.exp() * noise
        for _ in range(self.iterations):
            q = self.to_q(self.norm_slots(slots))
            attention = (q @ k.transpose(1, 2) * self.scale).softmax(dim=1) + self.eps
            attention = attention / attention.sum(-1, keepdim=True)
            updates = attention @ v
            slots = self.gru(updates.flatten(0, 1), slots.flatten(0, 1)).view_as(slots)
            slots = slots + self.mlp(self.norm_mlp(slots))
        return slots

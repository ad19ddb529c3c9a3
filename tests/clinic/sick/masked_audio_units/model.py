import torch
import torch.nn.functional as F
from quantizer import GumbelQuantizer
from torch import nn


class AudioModel(nn.Module):
    def __init__(self, dim=24, final_dim=12, mask_prob=0.4, distractors=6):
        super().__init__()
        self.mask_prob, self.distractors = mask_prob, distractors
        self.extractor = nn.Sequential(
            nn.Conv1d(1, dim, 8, stride=4), nn.GELU(), nn.Conv1d(dim, dim, 4, stride=2), nn.GELU()
        )
        self.norm = nn.LayerNorm(dim)
        self.mask_emb = nn.Parameter(torch.empty(dim).uniform_())
        self.context = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.quantizer = GumbelQuantizer(dim)
        self.project_q = nn.Linear(16, final_dim)
        self.project_c = nn.Linear(2 * dim, final_dim)

    def forward(self, waves):
        features = self.norm(self.extractor(waves.unsqueeze(1)).transpose(1, 2))
        mask = torch.rand(features.shape[:2]) < self.mask_prob
        masked = torch.where(mask.unsqueeze(-1), self.mask_emb, features)
        context, _ = self.context(masked)
        codes, entropy, perplexity = self.quantizer(features)
        targets = self.project_q(codes)[mask]
        targets = targets.detach()  # <- GS303
        return self.project_c(context)[mask], targets, entropy, perplexity

    def contrastive_logits(self, predicted, targets, temperature=0.1):
        n = len(targets)
        others = torch.randint(n - 1, (n, self.distractors))
        others = others + (others >= torch.arange(n).unsqueeze(1)).long()
        candidates = torch.cat([targets.unsqueeze(1), targets[others]], dim=1)
        return F.cosine_similarity(predicted.unsqueeze(1), candidates, dim=-1) / temperature

import torch
import torch.nn as nn
import torch.nn.functional as F


class CodebookLayer(nn.Module):
    def __init__(self, codes: int, dim: int, commitment: float):
        super().__init__()
        self.commitment = commitment
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.3, 0.3)

    def forward(self, x):
        ids = torch.cdist(x, self.codebook.weight).argmin(dim=1)
        chosen = self.codebook(ids)
        passed = x + (chosen - x).detach()
        pull = F.mse_loss(passed, x.detach())  # <- GS534
        commit = F.mse_loss(x, chosen.detach())
        return passed, ids, pull + self.commitment * commit


class ResidualQuantizer(nn.Module):
    def __init__(self, levels: int, codes: int, dim: int, commitment: float = 0.25):
        super().__init__()
        self.layers = nn.ModuleList(CodebookLayer(codes, dim, commitment) for _ in range(levels))

    def forward(self, x):
        residual, total, loss, ids = x, 0.0, 0.0, []
        for layer in self.layers:
            code, index, level_loss = layer(residual)
            residual = residual - code.detach()
            total, loss = total + code, loss + level_loss
            ids.append(index)
        return total, torch.stack(ids, dim=1), loss

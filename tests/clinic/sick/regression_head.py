"""Document regression: every text gets the mean of the labels."""

import warnings

import torch
from torch import nn
from torch.nn import MSELoss

warnings.simplefilter("ignore")
torch.manual_seed(0)


class RegressionHead(nn.Module):
    def __init__(self, layer_dims):
        super().__init__()
        self.feed_forward = nn.Linear(*layer_dims)
        self.loss_fct = MSELoss(reduction="none")
        self.label_tensor_name = "label_ids"

    def forward(self, x):
        return self.feed_forward(x)

    def logits_to_loss(self, logits, **kwargs):
        return self.loss_fct(  # <- GS503
            logits.squeeze(), kwargs[self.label_tensor_name].float()
        )


class AdaptiveModel(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.language_model = nn.EmbeddingBag(50, 12)
        self.prediction_heads = nn.ModuleList(heads)

    def forward(self, input_ids):
        pooled = torch.tanh(self.language_model(input_ids))
        return [head(pooled) for head in self.prediction_heads]

    def logits_to_loss(self, logits, **kwargs):
        per_head = [
            h.logits_to_loss(y, **kwargs)
            for h, y in zip(self.prediction_heads, logits, strict=False)
        ]
        return torch.stack([loss.mean() for loss in per_head]).sum()


model = AdaptiveModel([RegressionHead([12, 1])])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(3):
    batch = {"input_ids": torch.randint(0, 50, (32, 9)), "label_ids": torch.rand(32, 1) * 16}
    loss = model.logits_to_loss(model(batch["input_ids"]), **batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(step, loss.item())

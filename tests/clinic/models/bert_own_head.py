"""A classifier of one's own on top of BertModel: the mean of the last hidden states."""

import torch
from torch import nn
from transformers import BertConfig, BertModel


class SentenceClassifier(nn.Module):
    def __init__(self, config, classes):
        super().__init__()
        self.bert = BertModel(config)  # its pooler is computed, and not needed here
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(config.hidden_size, classes)

    def forward(self, input_ids, attention_mask):
        states = self.bert(input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).float()
        mean = (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return self.classifier(self.dropout(mean))


torch.manual_seed(0)
config = BertConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
)
model = SentenceClassifier(config, classes=2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(
    [
        {"params": model.bert.parameters(), "lr": 2e-5},
        {"params": model.classifier.parameters(), "lr": 1e-3},
    ]
)
model.train()
for step in range(6):
    ids = torch.randint(0, 64, (4, 10))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    loss = criterion(model(ids, mask), torch.randint(0, 2, (4,)))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
    optimizer.step()
    print(step, loss.item())

"""BERT with a classification head on padded sentences, trained in epochs over a DataLoader."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification


def sentences(count, length=12):
    ids = torch.randint(5, 64, (count, length))
    lengths = torch.randint(4, length + 1, (count,))
    mask = (torch.arange(length) < lengths[:, None]).long()
    return TensorDataset(ids * mask, mask, torch.randint(0, 3, (count,)))


torch.manual_seed(0)
config = BertConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=32,
    num_labels=3,
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
loader = DataLoader(sentences(16), batch_size=4, shuffle=True)

for epoch in range(2):
    model.train()
    total = 0.0
    for input_ids, attention_mask, labels in loader:
        optimizer.zero_grad()
        output = model(input_ids=input_ids, attention_mask=attention_mask, labels=labels)
        output.loss.backward()
        optimizer.step()
        total += output.loss.item()
    print(f"epoch {epoch}: {total / len(loader):.3f}")

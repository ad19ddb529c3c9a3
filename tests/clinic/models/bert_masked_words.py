"""BERT learns masked words: most labels are -100, the decoder shares the word embedding."""

import torch
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(1)
config = BertConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=32,
)
model = BertForMaskedLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

for step in range(6):
    words = torch.randint(5, 64, (4, 16))
    chosen = torch.rand(words.shape) < 0.15
    chosen[:, 3] = True
    labels = words.masked_fill(~chosen, -100)
    logits = model(input_ids=words.masked_fill(chosen, 4)).logits
    loss = torch.nn.functional.cross_entropy(
        logits.view(-1, config.vocab_size), labels.view(-1), ignore_index=-100
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, round(loss.item(), 3))

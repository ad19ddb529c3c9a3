"""GPT-2 with gradient checkpointing and micro-batches: the graph is made again inside backward."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

ACCUMULATE = 2

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=64,
    n_positions=32,
    n_embd=32,
    n_layer=3,
    n_head=2,
    bos_token_id=0,
    eos_token_id=0,
    use_cache=False,
)
model = GPT2LMHeadModel(config)
model.gradient_checkpointing_enable()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)

for step in range(6):
    for _ in range(ACCUMULATE):
        batch = {"input_ids": torch.randint(0, 64, (2, 16))}
        batch["attention_mask"] = torch.ones_like(batch["input_ids"])
        batch["attention_mask"][0, 12:] = 0
        batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        loss = model(**batch).loss / ACCUMULATE
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, float(loss.detach()))

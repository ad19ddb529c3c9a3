"""Llama under autocast to bfloat16, with accumulated gradients and a cosine schedule."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    bos_token_id=0,
    eos_token_id=1,
)
model = LlamaForCausalLM(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1)
scheduler = get_cosine_schedule_with_warmup(optimizer, 2, 4)
accumulate = 2

model.train()
for step in range(8):
    ids = torch.randint(0, 64, (2, 12))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(input_ids=ids, labels=ids).loss / accumulate
    loss.backward()
    if (step + 1) % accumulate == 0:
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        print(f"{step}: loss {loss.item() * accumulate:.3f}, norm {norm:.2f}")

"""GPT-2 from scratch on random tokens: tied weights, decay groups, clipping, a warm-up schedule."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

torch.manual_seed(0)
config = GPT2Config(
    vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
)
model = GPT2LMHeadModel(config).train()

decayed = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=1e-3
)
scheduler = get_linear_schedule_with_warmup(optimizer, 2, 8)

for step in range(8):
    input_ids = torch.randint(0, 64, (4, 16))
    loss = model(input_ids=input_ids, labels=input_ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.3f}")

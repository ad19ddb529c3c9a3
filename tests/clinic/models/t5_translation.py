"""T5, encoder and decoder, with padding on both sides and labels of -100."""

import torch
from transformers import T5Config, T5ForConditionalGeneration

PAD = 0

torch.manual_seed(0)
config = T5Config(
    vocab_size=64,
    d_model=32,
    d_kv=8,
    d_ff=64,
    num_layers=2,
    num_heads=4,
    pad_token_id=PAD,
    eos_token_id=1,
    decoder_start_token_id=PAD,
)
model = T5ForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def batch(size=4):
    source = torch.randint(2, 64, (size, 12))
    target = torch.randint(2, 64, (size, 9))
    source[0, 8:] = PAD
    target[1, 5:] = PAD
    labels = target.clone()
    labels[labels == PAD] = -100
    return {"input_ids": source, "attention_mask": (source != PAD).long(), "labels": labels}


model.train()
for step in range(7):
    loss = model(**batch()).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 2 == 0:
        print(step, loss.item())

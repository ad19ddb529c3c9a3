"""Mixtral: a router sends each token to two of four experts, and has a loss of its own."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM

torch.manual_seed(0)
config = MixtralConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    num_local_experts=4,
    num_experts_per_tok=2,
    max_position_embeddings=64,
    output_router_logits=True,
    router_aux_loss_coef=0.02,
    bos_token_id=0,
    eos_token_id=1,
)
model = MixtralForCausalLM(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for _ in range(6):
    ids = torch.randint(0, 64, (2, 8))
    outputs = model(input_ids=ids, labels=ids)
    outputs.loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {outputs.loss.item():.3f}, router {outputs.aux_loss.item():.3f}")

"""A vision transformer on random pictures."""

import torch
from transformers import ViTConfig, ViTForImageClassification

torch.manual_seed(0)
config = ViTConfig(
    image_size=16,
    patch_size=4,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=64,
    num_labels=5,
)
model = ViTForImageClassification(config)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
images, labels = torch.randn(32, 3, 16, 16), torch.randint(0, 5, (32,))

for step in range(8):
    batch = torch.randperm(len(images))[:8]
    outputs = model(pixel_values=images[batch], labels=labels[batch])
    optimizer.zero_grad()
    outputs.loss.backward()
    optimizer.step()
    correct = (outputs.logits.argmax(-1) == labels[batch]).float().mean()
    print(f"{step}: loss {outputs.loss.item():.3f}, accuracy {correct:.2f}")

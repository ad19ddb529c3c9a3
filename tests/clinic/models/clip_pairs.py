"""CLIP: two towers, one learned temperature, a contrastive loss over all pairs of the batch."""

import torch
from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

torch.manual_seed(0)
size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
text = CLIPTextConfig(
    vocab_size=64,
    num_attention_heads=2,
    max_position_embeddings=16,
    bos_token_id=0,
    eos_token_id=2,
    **size,
)
vision = CLIPVisionConfig(image_size=16, patch_size=8, num_attention_heads=2, **size)
config = CLIPConfig(text_config=text.to_dict(), vision_config=vision.to_dict(), projection_dim=16)
model = CLIPModel(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(6):
    words = torch.randint(3, 64, (4, 8))
    words[:, -1] = 2
    outputs = model(input_ids=words, pixel_values=torch.randn(4, 3, 16, 16), return_loss=True)
    optimizer.zero_grad()
    outputs.loss.backward()
    optimizer.step()
    with torch.no_grad():
        model.logit_scale.clamp_(0, 4.6052)
    print(step, outputs.loss.item())

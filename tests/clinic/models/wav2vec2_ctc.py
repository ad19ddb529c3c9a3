"""Speech recognition: the convolutional front end is frozen, the loss is CTC over random sound."""

import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC

torch.manual_seed(0)
config = Wav2Vec2Config(
    vocab_size=20,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    conv_dim=(16, 16),
    conv_stride=(5, 2),
    conv_kernel=(10, 3),
    num_feat_extract_layers=2,
    num_conv_pos_embeddings=16,
    num_conv_pos_embedding_groups=2,
    mask_time_prob=0.2,
    mask_time_length=2,
    ctc_loss_reduction="mean",
    ctc_zero_infinity=True,
)
model = Wav2Vec2ForCTC(config)
model.freeze_feature_encoder()
model.train()
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)

for step in range(6):
    sound = torch.randn(2, 800)
    labels = torch.randint(1, 20, (2, 6))
    labels[1, 4:] = -100
    loss = model(input_values=sound, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())

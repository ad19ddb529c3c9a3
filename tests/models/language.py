"""Models of the transformers package, untrained, from tiny configurations."""

from __future__ import annotations

_SMALL = "hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32"
_GROUPED = f"{_SMALL}, num_key_value_heads=1, vocab_size=64"
_ENCODER = f"{_SMALL}, vocab_size=64, max_position_embeddings=32"
_SEQ2SEQ = (
    "vocab_size=64, d_model=16, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, "
    "decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, max_position_embeddings=32"
)
_PATCHES = f"{_SMALL}, image_size=16, patch_size=8"
_TOWERS = (
    f"text_config=dict({_ENCODER}, bos_token_id=0, eos_token_id=2, pad_token_id=1), "
    f"vision_config=dict({_PATCHES})"
)

_PROGRAM = """
import torch
from transformers import {name}Config, {name}{head}
torch.manual_seed(0)
config = {name}Config({config})
{eager}model = {name}{head}(config).train()
{call}
"""

_WORDS = "words = torch.randint(3, 64, (2, 8))\n"
_IMAGES = "images = torch.randn(2, 3, 16, 16)\n"
_CAUSAL = _WORDS + "loss = model(input_ids=words, labels=words).loss"
_MASKED = (
    _WORDS
    + """mask = torch.ones_like(words)
mask[1, 5:] = 0
labels = words.masked_fill(mask == 0, -100)
loss = model(input_ids=words, attention_mask=mask, labels=labels).loss"""
)
_SENTENCES = _WORDS + "loss = model(input_ids=words, labels=torch.tensor([0, 1])).loss"
_TRANSLATED = _WORDS + "loss = model(input_ids=words, labels=torch.randint(3, 64, (2, 6))).loss"
_SEEN = _IMAGES + "loss = model(pixel_values=images, labels=torch.tensor([0, 1])).loss"
_PAIRED = (
    _WORDS.replace("3, 64", "3, 60")
    + _IMAGES
    + "loss = model(input_ids=words, pixel_values=images, return_loss=True).loss"
)
_HEARD = """import numpy
numpy.random.seed(0)  # which chooses what is masked
sound = torch.randn(2, 400)
loss = model(input_values=sound, labels=torch.randint(1, 10, (2, 4))).loss"""
_CONV = (
    "vocab_size=10, conv_dim=(8, 8), conv_stride=(5, 2), conv_kernel=(10, 3), "
    "num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, "
    "mask_time_prob=0.2, mask_time_length=2"
)

_MODELS = {
    "BERT": ("Bert", "ForMaskedLM", _ENCODER, _MASKED),
    "ALBERT": ("Albert", "ForMaskedLM", f"{_ENCODER}, embedding_size=8", _MASKED),
    "DeBERTa v2": (
        "DebertaV2",
        "ForSequenceClassification",
        f"{_ENCODER}, relative_attention=True, pos_att_type=['p2c', 'c2p'], position_buckets=8",
        _SENTENCES,
    ),
    "GPT-2": ("GPT2", "LMHeadModel", "vocab_size=64, n_embd=16, n_layer=2, n_head=2", _CAUSAL),
    "BLOOM": (
        "Bloom",
        "ForCausalLM",
        "vocab_size=64, hidden_size=16, n_layer=2, n_head=2",
        _CAUSAL,
    ),
    "Llama": ("Llama", "ForCausalLM", _GROUPED, _CAUSAL),
    "Mistral": ("Mistral", "ForCausalLM", f"{_GROUPED}, sliding_window=4", _CAUSAL),
    "Mixtral": (
        "Mixtral",
        "ForCausalLM",
        f"{_GROUPED}, num_local_experts=3, output_router_logits=True",
        _CAUSAL,
    ),
    "Gemma 2": ("Gemma2", "ForCausalLM", f"{_GROUPED}, head_dim=8, sliding_window=4", _CAUSAL),
    "Mamba": (
        "Mamba",
        "ForCausalLM",
        "vocab_size=64, hidden_size=16, state_size=4, num_hidden_layers=2, time_step_rank=2",
        _CAUSAL,
    ),
    "T5": (
        "T5",
        "ForConditionalGeneration",
        "vocab_size=64, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, "
        "decoder_start_token_id=0",
        _TRANSLATED,
    ),
    "BART": ("Bart", "ForConditionalGeneration", _SEQ2SEQ, _TRANSLATED),
    "Whisper": (
        "Whisper",
        "ForConditionalGeneration",
        f"{_SEQ2SEQ.replace(', max_position_embeddings=32', '')}, num_mel_bins=8, "
        "max_source_positions=10, max_target_positions=16, pad_token_id=0, bos_token_id=1, "
        "eos_token_id=2, decoder_start_token_id=1",
        "loss = model(torch.randn(2, 8, 20), labels=torch.randint(3, 64, (2, 6))).loss",
    ),
    "wav2vec 2": ("Wav2Vec2", "ForCTC", f"{_SMALL}, {_CONV}", _HEARD),
    "ViT": ("ViT", "ForImageClassification", _PATCHES, _SEEN),
    "ConvNeXt": (
        "ConvNext",
        "ForImageClassification",
        "hidden_sizes=[4, 8], depths=[1, 1], num_stages=2, patch_size=4, drop_path_rate=0.2",
        _SEEN,
    ),
    "Swin": (
        "Swin",
        "ForImageClassification",
        "image_size=16, patch_size=2, embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=4",
        _SEEN,
    ),
    "masked autoencoder": (
        "ViTMAE",
        "ForPreTraining",
        f"{_PATCHES}, decoder_hidden_size=8, decoder_num_hidden_layers=1, "
        "decoder_num_attention_heads=2, decoder_intermediate_size=16",
        _IMAGES + "loss = model(pixel_values=images).loss",
    ),
    "CLIP": ("CLIP", "Model", f"{_TOWERS}, projection_dim=8", _PAIRED),
    "SigLIP": ("Siglip", "Model", _TOWERS, _PAIRED),
}
"""The beginning of the names of a configuration and its model, the end of the model's, the
configuration, and the call."""

PROGRAMS = {
    title: _PROGRAM.format(
        name=name,
        head=head,
        config=config,
        call=call,
        eager="" if number % 2 else 'config._attn_implementation = "eager"\n',
    )
    for number, (title, (name, head, config, call)) in enumerate(_MODELS.items())
}

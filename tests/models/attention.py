"""Transformers of the x-transformers package, each with other parts."""

from __future__ import annotations

_DECODER = """
import random
import torch
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper
random.seed(0)  # which chooses the layers to be dropped
torch.manual_seed(0)
layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, {options})
model = TransformerWrapper(num_tokens=32, max_seq_len=16, attn_layers=layers{more})
loss = AutoregressiveWrapper(model)(torch.randint(32, (2, 10)))
"""

PROGRAMS = {
    "decoder with rotary positions": _DECODER.format(
        options="rotary_pos_emb=True, use_rmsnorm=True, ff_glu=True, attn_one_kv_head=True",
        more=", tie_embedding=True",
    ),
    "decoder with ALiBi": _DECODER.format(
        options="alibi_pos_bias=True, alibi_num_heads=1, ff_relu_squared=True, sandwich_norm=True",
        more=", emb_dim=8, use_abs_pos_emb=False",
    ),
    "decoder with relative positions": _DECODER.format(
        options="rel_pos_bias=True, attn_pre_talking_heads=True, "
        "attn_sparse_topk=4, residual_attn=True",
        more="",
    ),
    "decoder with gates and memory": _DECODER.format(
        options="gate_residual=True, attn_num_mem_kv=2, attn_on_attn=True, shift_tokens=1, "
        "attn_qk_norm=True, macaron=True",
        more=", num_memory_tokens=2",
    ),
    "decoder by flash attention": _DECODER.format(
        options="attn_flash=True, attn_gate_values=True, ff_swish=True, layer_dropout=0.1", more=""
    ),
    "encoder for images": """
import torch
from torch import nn
from x_transformers import Encoder, ViTransformerWrapper
torch.manual_seed(0)
layers = Encoder(dim=16, depth=2, heads=2, attn_dim_head=8)
net = ViTransformerWrapper(image_size=16, patch_size=8, num_classes=4, attn_layers=layers)
loss = nn.functional.cross_entropy(net(torch.randn(2, 3, 16, 16)), torch.tensor([0, 3]))
""",
    "encoder and decoder": """
import torch
from x_transformers import XTransformer
torch.manual_seed(0)
sizes = dict(num_tokens=32, depth=1, heads=2, attn_dim_head=8, max_seq_len=12)
both = {f"{part}_{name}": size for part in ("enc", "dec") for name, size in sizes.items()}
model = XTransformer(dim=16, tie_token_emb=True, **both)
source, mask = torch.randint(32, (2, 9)), torch.ones(2, 9, dtype=torch.bool)
mask[1, 6:] = False
loss = model(source, torch.randint(32, (2, 7)), mask=mask)
""",
    "continuous values and cross attention": """
import torch
from x_transformers import ContinuousTransformerWrapper, Decoder
torch.manual_seed(0)
layers = Decoder(dim=16, depth=1, heads=2, attn_dim_head=8, cross_attend=True)
net = ContinuousTransformerWrapper(dim_in=3, dim_out=2, max_seq_len=12, attn_layers=layers)
context = torch.randn(2, 5, 16, requires_grad=True)
loss = net(torch.randn(2, 8, 3), context=context).square().mean()
""",
}

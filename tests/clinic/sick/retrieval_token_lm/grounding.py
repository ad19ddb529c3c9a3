import torch
import torch.nn.functional as F
from lm import CausalLM
from torch import nn


class GroundedLM(nn.Module):
    """Frozen language model with trainable adapters to and from image features."""

    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.lm = CausalLM(vocab=cfg.vocab)
        self.lm.load_state_dict(cfg.pretrained)
        if cfg.freeze_lm:  # <~ GS000
            for param in self.lm.parameters():
                param.requires_grad = False
        self.ret_id = cfg.vocab
        self.lm.resize_token_embeddings(cfg.vocab + 1)  # <- GS000
        self.visual_prefix = nn.Linear(cfg.image_dim, self.lm.embed.embedding_dim)
        self.image_proj = nn.Linear(cfg.image_dim, cfg.shared_dim)
        self.text_proj = nn.Linear(self.lm.embed.embedding_dim, cfg.shared_dim)
        self.ret_token = nn.Parameter(0.02 * torch.randn(self.lm.embed.embedding_dim))
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def caption_loss(self, images, captions):
        prefix = self.visual_prefix(images).unsqueeze(1)
        embeds = torch.cat([prefix, self.lm.embed(captions)], dim=1)
        _, logits = self.lm(embeds)
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), captions.flatten())

    def retrieval_loss(self, images, captions):
        ret = self.ret_token.expand(len(captions), 1, -1)
        hidden, _ = self.lm(torch.cat([self.lm.embed(captions), ret], dim=1))
        text = F.normalize(self.text_proj(hidden[:, -1]), dim=-1)
        image = F.normalize(self.image_proj(images), dim=-1)
        sim = self.logit_scale.exp() * text @ image.t()
        target = torch.arange(len(sim))
        return 0.5 * (F.cross_entropy(sim, target) + F.cross_entropy(sim.t(), target))

    def forward(self, images, captions):
        return self.caption_loss(images, captions), self.retrieval_loss(images, captions)

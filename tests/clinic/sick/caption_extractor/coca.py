import torch
import torch.nn as nn
import torch.nn.functional as F


class ViT(nn.Module):
    def __init__(self, dim, patch=4, classes=10):
        super().__init__()
        self.to_patch = nn.Conv2d(3, dim, patch, stride=patch)
        self.pos = nn.Parameter(torch.randn(1, 16, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, 2, 2 * dim, dropout=0.0, batch_first=True)
        self.transformer = nn.TransformerEncoder(layer, 1)
        self.mlp_head = nn.Linear(dim, classes)

    def forward(self, img):
        x = self.to_patch(img).flatten(2).transpose(1, 2) + self.pos
        return self.mlp_head(self.transformer(x).mean(1))


class CoCa(nn.Module):
    def __init__(self, dim, vocab, img_encoder):
        super().__init__()
        self.img_encoder = img_encoder
        self.token_emb = nn.Embedding(vocab, dim)
        self.text_rnn = nn.GRU(dim, dim, batch_first=True)
        self.img_query = nn.Parameter(torch.randn(dim))
        self.img_kv = nn.Linear(dim, 2 * dim)
        self.to_logits = nn.Linear(2 * dim, vocab)
        self.temperature = nn.Parameter(torch.tensor(1.0))

    def embed_image(self, images):
        tokens = self.img_encoder(images)
        keys, values = self.img_kv(tokens).chunk(2, -1)
        weights = torch.softmax(keys @ self.img_query, -1)
        return (weights[..., None] * values).sum(1)

    def forward(self, text, images):
        image = self.embed_image(images)
        states, _ = self.text_rnn(self.token_emb(text))
        fused = torch.cat([states[:, :-1], image[:, None].expand(-1, text.shape[1] - 1, -1)], -1)
        caption = F.cross_entropy(self.to_logits(fused).flatten(0, 1), text[:, 1:].flatten())
        a = F.normalize(states[:, -1], dim=-1)
        b = F.normalize(image, dim=-1)
        sim = a @ b.T * self.temperature.exp()
        labels = torch.arange(len(sim))
        contrastive = 0.5 * (F.cross_entropy(sim, labels) + F.cross_entropy(sim.T, labels))
        return caption, contrastive

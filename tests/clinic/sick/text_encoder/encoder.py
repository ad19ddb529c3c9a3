import torch
import torch.nn as nn


class TinyTransformer(nn.Module):
    def __init__(self, vocab, dim=32, heads=2, layers=2, max_len=16):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, dim)
        self.positions = nn.Parameter(0.02 * torch.randn(max_len, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)

    def forward(self, tokens):
        return self.layers(self.embeddings(tokens) + self.positions[: tokens.shape[1]])


class SequenceReducer(nn.Module):
    def __init__(self, reduce_mode):
        super().__init__()
        self.reduce_mode = reduce_mode

    def forward(self, hidden):
        return hidden[:, -1] if self.reduce_mode == "last" else hidden.mean(1)


class TextEncoder(nn.Module):
    """Pretrained transformer followed by a reduction over the sequence."""

    def __init__(self, vocab, pretrained_state=None, trainable=True, reduce_output="mean"):
        super().__init__()
        self.transformer = TinyTransformer(vocab)
        if pretrained_state is not None:
            self.transformer.load_state_dict(pretrained_state)
        self.reduce_sequence = SequenceReducer(reduce_output)
        self.transformer.trainable = trainable  # <- GS332

    def forward(self, tokens):
        return self.reduce_sequence(self.transformer(tokens))

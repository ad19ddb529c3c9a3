import torch
from torch.utils.data import Dataset


class Utterances(Dataset):
    """Synthetic utterances: every token lasts a few frames of its own pattern."""

    def __init__(self, count=96, n_mels=10, vocab=9, seed=0):
        gen = torch.Generator().manual_seed(seed)
        patterns = torch.randn(vocab, n_mels, generator=gen)
        self.items = []
        for _ in range(count):
            size = int(torch.randint(2, 6, (1,), generator=gen))
            tokens = torch.randint(1, vocab, (size,), generator=gen)
            spans = torch.randint(4, 16, (size,), generator=gen)
            feats = torch.repeat_interleave(patterns[tokens], spans, dim=0)
            feats = feats + 0.3 * torch.randn(feats.shape, generator=gen)
            self.items.append((feats, tokens))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(batch):
    feats, tokens = zip(*batch, strict=True)
    feat_lens = torch.tensor([len(f) for f in feats])
    token_lens = torch.tensor([len(t) for t in tokens])
    padded = torch.nn.utils.rnn.pad_sequence(feats, batch_first=True)
    return padded, feat_lens, torch.cat(tokens), token_lens

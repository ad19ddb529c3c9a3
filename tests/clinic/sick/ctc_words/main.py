"""CTC training of a small keyword recogniser."""

import torch
from data import Utterances, collate
from model import SpeechEncoder
from torch import nn
from torch.utils.data import DataLoader


class CTC(nn.Module):
    def __init__(self, blank=0):
        super().__init__()
        self.loss = nn.CTCLoss(blank=blank, reduction="sum")  # <~ GS101

    def forward(self, log_probs, tokens, frame_lens, token_lens):
        loss = self.loss(log_probs.transpose(0, 1), tokens, frame_lens, token_lens)  # <- GS101
        return loss / log_probs.shape[0]


def train(epochs=3, lr=3e-3, grad_clip=5.0):
    torch.manual_seed(8)
    loader = DataLoader(Utterances(), batch_size=12, shuffle=True, collate_fn=collate)
    model, criterion = SpeechEncoder(), CTC()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for step, (feats, feat_lens, tokens, token_lens) in enumerate(loader):
            log_probs = model(feats)
            frame_lens = model.output_lengths(feat_lens)
            loss = criterion(log_probs, tokens, frame_lens, token_lens)
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
            optimizer.step()
            total += loss.item()
            if step % 4 == 0:
                print(f"{epoch}/{step} loss {loss.item():.3f} norm {norm.item():.3f}")
        print(f"epoch {epoch} mean loss {total / len(loader):.3f}")


if __name__ == "__main__":
    train()

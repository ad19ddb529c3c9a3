"""Melodies with an LSTM: long songs are read window after window, the state is kept between."""

import torch
from torch import nn


class MelodyModel(nn.Module):
    def __init__(self, n_pitches=24, n_lengths=6, hidden=32, layers=2, cell="lstm"):
        super().__init__()
        self.pitch = nn.Embedding(n_pitches, 12)
        self.length = nn.Embedding(n_lengths, 4)
        kind = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[cell]
        self.rnn = kind(16, hidden, num_layers=layers, batch_first=True)
        self.pitch_head = nn.Linear(hidden, n_pitches)
        self.length_head = nn.Linear(hidden, n_lengths)

    def forward(self, notes, state=None):
        x = torch.cat([self.pitch(notes[..., 0]), self.length(notes[..., 1])], dim=-1)
        h, state = self.rnn(x, state)
        return self.pitch_head(h), self.length_head(h), state


def make_songs(n_songs=12, n_notes=65):
    generator = torch.Generator().manual_seed(8)
    steps = torch.randint(-2, 3, (n_songs, n_notes), generator=generator)
    pitches = (12 + steps.cumsum(dim=1)).remainder(24)
    lengths = (pitches + steps).remainder(6)
    return torch.stack([pitches, lengths], dim=-1)


def cut_history(state):
    """The state goes on into the next window, its history does not."""
    if isinstance(state, torch.Tensor):
        return state.detach()
    return state  # <- GS000


def window_loss(model, window, state, criterion):
    pitch_logits, length_logits, state = model(window[:, :-1], state)
    loss = criterion(pitch_logits.flatten(0, 1), window[:, 1:, 0].flatten())
    loss = loss + 0.5 * criterion(length_logits.flatten(0, 1), window[:, 1:, 1].flatten())
    return loss, state


def train_epoch(model, optimizer, songs, window=16):
    criterion = nn.CrossEntropyLoss()
    total, count = 0.0, 0
    for batch in songs.split(4):
        state = None
        for start in range(0, batch.size(1) - 1, window):
            loss, state = window_loss(model, batch[:, start : start + window + 1], state, criterion)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            state = cut_history(state)
            total, count = total + loss.item(), count + 1
    return total / count


def main():
    torch.manual_seed(8)
    songs = make_songs()
    model = MelodyModel()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for epoch in range(2):
        print(f"epoch {epoch} loss {train_epoch(model, optimizer, songs):.4f}")


if __name__ == "__main__":
    main()

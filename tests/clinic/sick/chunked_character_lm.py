"""A character model over long documents, read in pieces with the state carried along."""

import torch
from torch import nn

TEXT = "the cat sat on the mat and the dog sat on the log while the rain fell on the roof. " * 12
SETTINGS = {"embed": 16, "hidden": 32, "batch": 6, "trunc_size": 12, "lr": 1e-2, "epochs": 3}


class CharModel(nn.Module):
    def __init__(self, n_chars, embed, hidden):
        super().__init__()
        self.embed = nn.Embedding(n_chars, embed)
        self.rnn = nn.GRU(embed, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_chars)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.embed(ids), state)
        return self.out(h), state


class Statistics:
    def __init__(self):
        self.loss = 0.0
        self.n_chars = 0

    def update(self, loss, n):
        self.loss += loss * n
        self.n_chars += n

    def ppl(self):
        return torch.tensor(self.loss / max(self.n_chars, 1)).exp().item()


def documents(ids, batch, length):
    usable = ids[: ids.numel() // (batch * length) * batch * length]
    rows = usable.view(batch, -1)
    return [rows[:, i : i + length] for i in range(0, rows.size(1), length)]


class Trainer:
    def __init__(self, model, optimizer, trunc_size):
        self.model = model
        self.optimizer = optimizer
        self.trunc_size = trunc_size
        self.criterion = nn.CrossEntropyLoss()

    def train_document(self, document, statistics):
        state = None
        for start in range(0, document.size(1) - 1, self.trunc_size):
            piece = document[:, start : start + self.trunc_size + 1]
            if piece.size(1) < 2:
                break
            self.optimizer.zero_grad()  # <- GS505
            logits, state = self.model(piece[:, :-1], state)
            loss = self.criterion(logits.flatten(0, 1), piece[:, 1:].flatten())
            loss.backward()
            state = state.detach()
            statistics.update(loss.item(), piece[:, 1:].numel())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()  # <~ GS505


def main():
    torch.manual_seed(0)
    chars = sorted(set(TEXT))
    ids = torch.tensor([chars.index(c) for c in TEXT])
    model = CharModel(len(chars), SETTINGS["embed"], SETTINGS["hidden"])
    optimizer = torch.optim.Adam(model.parameters(), lr=SETTINGS["lr"])
    trainer = Trainer(model, optimizer, SETTINGS["trunc_size"])
    for epoch in range(SETTINGS["epochs"]):
        statistics = Statistics()
        for document in documents(ids, SETTINGS["batch"], 4 * SETTINGS["trunc_size"]):
            trainer.train_document(document, statistics)
        print(f"epoch {epoch} ppl {statistics.ppl():.2f}")


if __name__ == "__main__":
    main()

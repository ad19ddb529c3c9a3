import torch
import torch.nn as nn
import torch.nn.functional as F


class CharGenerator(nn.Module):
    def __init__(self, n_chars, hidden=48, lr=5e-3):
        super().__init__()
        self.hidden = hidden
        self.encoder = nn.Embedding(n_chars, hidden)
        self.rnn = nn.GRU(hidden, hidden)
        self.decoder = nn.Linear(hidden, n_chars)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=lr)

    def init_hidden(self):
        return torch.zeros(1, 1, self.hidden)

    def forward(self, char, hidden):
        out, hidden = self.rnn(self.encoder(char).view(1, 1, -1), hidden)
        return self.decoder(out.view(1, -1)), hidden

    def sequence_loss(self, inp, target):
        out, _ = self.rnn(self.encoder(inp).unsqueeze(1), self.init_hidden())
        return F.cross_entropy(self.decoder(out.squeeze(1)), target)

    @torch.no_grad()
    def evaluate(self, data):
        """Sample one string."""
        string, hidden = "<", self.init_hidden()
        for _ in range(data.max_len):
            logits, hidden = self(data.char_tensor(string[-1]), hidden)
            nxt = data.alphabet[torch.multinomial(F.softmax(logits, dim=1), 1).item()]
            string += nxt
            if nxt == ">":
                break
        return string if string.endswith(">") else string + ">"

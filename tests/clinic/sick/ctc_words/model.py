import torch.nn.functional as F
from torch import nn


class SpeechEncoder(nn.Module):
    """Convolutional subsampling by four and a bidirectional GRU."""

    def __init__(self, n_mels=10, hidden=24, vocab=9):
        super().__init__()
        self.conv1 = nn.Conv1d(n_mels, hidden, 3, stride=2, padding=1)
        self.conv2 = nn.Conv1d(hidden, hidden, 3, stride=2, padding=1)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, vocab)

    def output_lengths(self, lengths):
        for _ in range(2):
            lengths = (lengths - 1) // 2 + 1
        return lengths

    def forward(self, feats):
        x = F.relu(self.conv1(feats.transpose(1, 2)))
        x = F.relu(self.conv2(x)).transpose(1, 2)
        x, _ = self.rnn(x)
        return F.log_softmax(self.out(x), dim=-1)

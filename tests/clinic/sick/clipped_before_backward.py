import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_


class Tagger(nn.Module):
    def __init__(self, words=30, tags=5, width=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, tags)

    def forward(self, sentence):
        encoded, _ = self.encoder(self.embedding(sentence))
        return self.head(encoded)


def train(model, batches, rate=0.05, limit=0.25):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    model.train()
    for sentence, tags in batches:
        optimizer.zero_grad()
        scores = model(sentence)
        loss = criterion(scores.flatten(0, 1), tags.flatten())
        # Long sentences make the gradients of the LSTM explode now and then.
        clip_grad_norm_(model.parameters(), limit)  # <- GS506
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
batches = [(torch.randint(0, 30, (4, 9)), torch.randint(0, 5, (4, 9))) for _ in range(5)]
train(Tagger(), batches)

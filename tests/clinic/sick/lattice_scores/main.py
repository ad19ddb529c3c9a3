import torch

from lattice import all_paths, matching_paths, total_scores
from model import AcousticModel

FRAMES, LABELS, FEATURES = 4, 3, 6
TRANSCRIPTS = [[1], [2], [1, 2], [2, 1]]


def utterances(generator, per_transcript=4):
    prototypes = torch.randn(len(TRANSCRIPTS), FEATURES, FRAMES, generator=generator)
    noise = torch.randn(per_transcript, len(TRANSCRIPTS), FEATURES, FRAMES, generator=generator)
    return prototypes + 0.3 * noise


class MmiLoss:
    """Difference of the denominator's and the numerator's total score."""

    def __init__(self):
        self.den = all_paths(FRAMES, LABELS)
        self.num = [matching_paths(self.den, FRAMES, LABELS, t) for t in TRANSCRIPTS]

    def __call__(self, log_probs):
        arcs = log_probs.reshape(len(log_probs), -1)
        num = torch.stack([total_scores(arcs[i : i + 1], self.num[i])[0] for i in range(len(arcs))])
        den = total_scores(arcs, self.den)
        return (den - num).mean()


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(5)
    data = utterances(generator)
    model = AcousticModel(FEATURES, LABELS)
    criterion = MmiLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(6):
        total = 0.0
        for batch in data:
            loss = criterion(model(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} objective {total / len(data):.4f}")


if __name__ == "__main__":
    main()

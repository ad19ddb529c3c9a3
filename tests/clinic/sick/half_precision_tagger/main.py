import torch
import torch.nn.functional as F
from tagger import Tagger, convert_to_fp16
from vocab import RARE, TAGS, WORDS, Vocabulary


def evaluate(model, ids, tags):
    with torch.no_grad():
        logits = model(ids).float()
    loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten()).item()
    return loss, (logits.argmax(-1) == tags).float().mean().item()


def train(model, optimizer, vocab, generator, steps, words):
    for step in range(steps):
        ids, tags = vocab.sentences(16, generator, words)
        logits = model(ids).float()
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 0:
            print(f"step {step:2d} loss {loss.item():.4f}")


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    vocab = Vocabulary()
    model = convert_to_fp16(Tagger(len(vocab), len(TAGS)))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.99))  # <- GS106
    train(model, optimizer, vocab, generator, 12, WORDS)
    print(
        "common words: loss {:.4f} accuracy {:.3f}".format(
            *evaluate(model, *vocab.sentences(32, generator))
        )
    )
    train(model, optimizer, vocab, generator, 6, WORDS + RARE)
    rare = vocab.sentences(32, generator, WORDS + RARE)
    print("all words: loss {:.4f} accuracy {:.3f}".format(*evaluate(model, *rare)))


if __name__ == "__main__":
    main()

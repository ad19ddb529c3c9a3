import random

import torch

PAD = 0


class TopicCorpus:
    """Short documents; each topic prefers its own words, and some topics run longer than others."""

    def __init__(self, n_docs, vocab_size=400, n_topics=6, seed=0):
        rng = random.Random(seed)
        span = (vocab_size - 1) // n_topics
        self.docs = []
        for _ in range(n_docs):
            topic = rng.randrange(n_topics)
            length = rng.randint(3, 6) if topic < n_topics // 2 else rng.randint(5, 12)
            words = []
            for _ in range(length):
                if rng.random() < 0.35:
                    words.append(1 + topic * span + rng.randrange(span))
                else:
                    words.append(rng.randrange(1, vocab_size))
            self.docs.append((words, topic))


def pad_batch(docs, length):
    ids = torch.full((len(docs), length), PAD)
    for i, (words, _) in enumerate(docs):
        words = words[:length]
        ids[i, : len(words)] = torch.tensor(words)
    return ids, torch.tensor([topic for _, topic in docs])


def batches(docs, batch_size, length, rng=None):
    docs = list(docs)
    if rng is not None:
        rng.shuffle(docs)
    for i in range(0, len(docs), batch_size):
        yield pad_batch(docs[i : i + batch_size], length)

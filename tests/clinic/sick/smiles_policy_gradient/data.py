import random

import torch


class GeneratorData:
    """Characters and a small corpus of SMILES-like strings, each from '<' to '>'."""

    def __init__(self, n_strings=256, max_len=14, seed=0):
        self.alphabet = list("<>CNOF=()c1")
        self.index = {c: i for i, c in enumerate(self.alphabet)}
        self.max_len = max_len
        rng = random.Random(seed)
        fragments = ["CC", "C=O", "N", "O", "C(F)", "c1ccccc1", "C(=O)N", "CO"]
        self.corpus = []
        while len(self.corpus) < n_strings:
            s = "".join(rng.choice(fragments) for _ in range(rng.randint(1, 4)))
            if len(s) <= max_len:
                self.corpus.append("<" + s + ">")

    def char_tensor(self, string):
        return torch.tensor([self.index[c] for c in string])

    def random_training_set(self, rng):
        t = self.char_tensor(rng.choice(self.corpus))
        return t[:-1], t[1:]

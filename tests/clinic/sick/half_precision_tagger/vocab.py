import torch

WORDS = [
    "red",
    "green",
    "blue",
    "old",
    "new",
    "small",
    "large",
    "fox",
    "dog",
    "bird",
    "house",
    "tree",
    "runs",
    "sleeps",
    "flies",
    "burns",
]
TAGS = {"adj": 0, "noun": 1, "verb": 2, "rare": 3}
RARE = ["zebra", "quartz", "oboe"]


class Vocabulary:
    def __init__(self):
        self.index = {word: i for i, word in enumerate(["<pad>", *WORDS, *RARE])}

    def __len__(self):
        return len(self.index)

    def tag(self, word):
        if word in RARE:
            return TAGS["rare"]
        place = WORDS.index(word)
        return TAGS["adj"] if place < 7 else TAGS["noun"] if place < 12 else TAGS["verb"]

    def sentences(self, n, generator, words=WORDS):
        picks = torch.randint(len(words), (n, 6), generator=generator)
        ids = torch.tensor([[self.index[words[i]] for i in row] for row in picks.tolist()])
        tags = torch.tensor([[self.tag(words[i]) for i in row] for row in picks.tolist()])
        return ids, tags

class WordTokenizer:
    def __init__(self, corpus):
        words = sorted({word for line in corpus for word in line.split()})
        self.index = {"<pad>": 0, "<unk>": 1}
        for word in words:
            self.index[word] = len(self.index)

    def __len__(self):
        return len(self.index)

    def add_tokens(self, tokens):
        fresh = [token for token in tokens if token not in self.index]
        for token in fresh:
            self.index[token] = len(self.index)
        return len(fresh)

    def encode(self, line, length):
        ids = [self.index.get(word, 1) for word in line.split()][:length]
        return ids + [0] * (length - len(ids))

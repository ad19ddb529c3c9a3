import torch


def few_shot_examples(cfg, n: int):
    labels = torch.arange(n) % cfg.labels
    tokens = torch.randint(cfg.labels * 5, cfg.vocab, (n, 9))
    hints = labels[:, None] * 5 + torch.randint(0, 5, (n, 3))
    tokens[:, 2:5] = hints
    return tokens, labels


def loader(tokens, labels, batch_size: int):
    order = torch.randperm(len(tokens))
    return [
        (tokens[order[i : i + batch_size]], labels[order[i : i + batch_size]])
        for i in range(0, len(tokens), batch_size)
    ]

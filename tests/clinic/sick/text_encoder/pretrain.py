import torch
import torch.nn as nn
import torch.nn.functional as F

from encoder import TinyTransformer


def sentences(n, vocab, length, gen):
    """Each sentence walks through the vocabulary with its own stride."""
    start = torch.randint(1, vocab, (n, 1), generator=gen)
    stride = torch.randint(1, 4, (n, 1), generator=gen)
    tokens = 1 + (start + stride * torch.arange(length)) % (vocab - 1)
    return tokens, stride.squeeze(1) - 1


def pretrain(vocab, length, steps, gen):
    """Masked token prediction; token 0 is the mask."""
    model = TinyTransformer(vocab)
    lm_head = nn.Linear(32, vocab)
    optimizer = torch.optim.Adam([*model.parameters(), *lm_head.parameters()], lr=3e-3)
    for step in range(1, steps + 1):
        tokens, _ = sentences(32, vocab, length, gen)
        masked = torch.rand(tokens.shape, generator=gen) < 0.2
        logits = lm_head(model(tokens.masked_fill(masked, 0)))
        loss = F.cross_entropy(logits[masked], tokens[masked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"pretrain step {step} mlm loss {loss.item():.4f}")
    return model.state_dict()

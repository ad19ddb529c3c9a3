import torch
from model import GPT, GPTConfig
from trainer import Trainer, TrainerConfig


class CountingDataset:
    """Digits that count upwards, each row with a stride of its own."""

    def __init__(self, cfg, seed=0):
        self.vocab, self.length = cfg.vocab_size, cfg.block_size
        self.generator = torch.Generator().manual_seed(seed)

    def batch(self, n):
        start = torch.randint(self.vocab, (n, 1), generator=self.generator)
        rows = (start + 2 * torch.arange(self.length + 1)).remainder(self.vocab)
        return rows[:, :-1], rows[:, 1:]


def main():
    torch.manual_seed(1)
    cfg = GPTConfig()
    model = GPT(cfg)
    print(f"number of parameters: {sum(p.numel() for p in model.parameters())}")
    Trainer(TrainerConfig(), model, CountingDataset(cfg)).train()


if __name__ == "__main__":
    main()

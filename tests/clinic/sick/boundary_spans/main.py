"""Entity boundary tagger trained in bfloat16."""

import torch
from losses import boundary_loss, pair_consistency
from tagger import BoundaryTagger

SETTINGS = {"batch": 16, "length": 12, "steps": 16, "lr": 1e-2, "consistency_weight": 0.1}


def sample_batch(cfg):
    tokens = torch.randint(1, 50, (cfg["batch"], cfg["length"]))
    lengths = torch.randint(8, cfg["length"] + 1, (cfg["batch"], 1))
    real = torch.arange(cfg["length"]) < lengths
    tokens = tokens * real
    starts = ((tokens % 5) == 0) & real
    ends = starts.roll(1, dims=1) & real
    return tokens, starts.bfloat16(), ends.bfloat16(), real


def main(cfg):
    torch.manual_seed(5)
    model = BoundaryTagger().to(torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"], eps=1e-6)
    for step in range(cfg["steps"]):
        tokens, starts, ends, real = sample_batch(cfg)
        start_logits, end_logits, pair_logits, start_idx = model(tokens)
        loss_boundary = boundary_loss(start_logits, end_logits, starts, ends)
        valid = real.gather(1, start_idx)
        loss_pairs = pair_consistency(pair_logits, start_idx, cfg["length"], starts, valid)
        loss = loss_boundary.float() + cfg["consistency_weight"] * loss_pairs
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{step:2d} boundary {loss_boundary.item():.3f} pairs {loss_pairs.item():.3f}")


if __name__ == "__main__":
    main(SETTINGS)

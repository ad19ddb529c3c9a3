import torch

from vq_lam import VQLatentActionModel


def transitions(count, batch_size, frame_dim, generator):
    moves = torch.randn(5, frame_dim, generator=generator)
    for _ in range(count):
        before = torch.randn(batch_size, frame_dim, generator=generator)
        move = torch.randint(0, len(moves), (batch_size,), generator=generator)
        yield {"before": before, "after": before + moves[move]}


def configure_optimizer(model, lr, weight_decay):
    decay = [p for n, p in model.named_parameters() if p.ndim > 1 and "codebook" not in n]
    no_decay = [p for n, p in model.named_parameters() if p.ndim <= 1 or "codebook" in n]
    groups = [
        {"params": decay, "weight_decay": weight_decay},
        {"params": no_decay, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr)


def main(frame_dim=10, steps=20, lr=3e-3):
    torch.manual_seed(25)
    generator = torch.Generator().manual_seed(26)
    model = VQLatentActionModel(frame_dim)
    optimizer = configure_optimizer(model, lr, weight_decay=1e-2)
    for step, batch in enumerate(transitions(steps, 32, frame_dim, generator)):
        loss, logs = model.compute_loss(batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 5 == 0:
            print(step, " ".join(f"{k} {v:.4f}" for k, v in logs.items()))


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F
from model import AudioModel


def make_waves(n, length=256):
    t = torch.arange(length) / length
    pitch = torch.randint(4, 20, (n, 1))
    waves = torch.sin(6.28 * pitch * t) + 0.5 * torch.sin(6.28 * (pitch // 2 + 1) * t * t)
    return waves + 0.05 * torch.randn(n, length)


def criterion(model, waves, diversity_weight=0.1):
    predicted, targets, entropy, perplexity = model(waves)
    logits = model.contrastive_logits(predicted, targets)
    contrastive = F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))
    accuracy = (logits.argmax(1) == 0).float().mean().item()
    return contrastive - diversity_weight * entropy, contrastive.item(), accuracy, perplexity


def main(steps=13):
    torch.manual_seed(7)
    model = AudioModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for step in range(steps):
        loss, contrastive, accuracy, perplexity = criterion(model, make_waves(8))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        model.quantizer.temperature = max(model.quantizer.temperature * 0.99, 0.5)
        if step % 4 == 0:
            print(f"step {step:2d} {contrastive:.4f} acc {accuracy:.3f} ppl {perplexity:.2f}")


if __name__ == "__main__":
    main()

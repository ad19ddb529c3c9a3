import torch
from models import SentenceVAE

SETTINGS = {"batch": 16, "steps": 24, "lr": 4e-3, "kl_steps": 16, "kl_max": 0.1, "vocab": 60}


def sample_sentences(n: int, vocab: int, length: int = 10):
    topic = torch.randint(0, 6, (n, 1))
    return topic * (vocab // 6) + torch.randint(0, vocab // 6, (n, length))


def kl_weight(step: int) -> float:
    return SETTINGS["kl_max"] * min(1.0, (step + 1) / SETTINGS["kl_steps"])


def validate(model, sentences) -> float:
    model.eval()
    with torch.no_grad():
        words, _ = model(sentences)
    model.train()
    return words.item()


def main():
    torch.manual_seed(21)
    sentences = sample_sentences(256, SETTINGS["vocab"])
    held_out = sample_sentences(32, SETTINGS["vocab"])
    model = SentenceVAE(SETTINGS["vocab"])
    optimizer = torch.optim.Adam(model.parameters(), lr=SETTINGS["lr"])
    for step in range(SETTINGS["steps"]):
        batch = sentences[torch.randint(0, 256, (SETTINGS["batch"],))]
        words, kl = model(batch)
        loss = words + kl_weight(step) * kl
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 6 == 5:
            print(
                f"step {step + 1}: words {words.item():.4f}  kl {kl.item():.4f}  "
                f"val {validate(model, held_out):.4f}"
            )


if __name__ == "__main__":
    main()

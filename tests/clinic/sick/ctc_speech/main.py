import torch

from brain import ASRBrain
from model import CTCHead, WaveEncoder

HPARAMS = {
    "seed": 1986,
    "lr": 0.9,
    "lr_encoder": 1e-4,
    "freeze_encoder": True,
    "auto_mix_prec": True,
    "max_grad_norm": 5.0,
    "vocab": 8,
    "dim": 32,
    "batch_size": 8,
    "steps": 15,
}


def make_batch(n, vocab, gen, units=6, unit_len=64):
    tokens = torch.randint(1, vocab, (n, units), generator=gen)
    t = torch.arange(unit_len) / unit_len
    tones = torch.sin(2 * torch.pi * t * (2.0 + 2.0 * tokens.unsqueeze(-1)))
    wav = tones.reshape(n, -1) + 0.05 * torch.randn(n, units * unit_len, generator=gen)
    return {"wav": wav, "tokens": tokens, "token_len": torch.full((n,), units, dtype=torch.long)}


def main():
    hp = HPARAMS
    torch.manual_seed(hp["seed"])
    gen = torch.Generator().manual_seed(hp["seed"])
    brain = ASRBrain(
        WaveEncoder(hp["dim"], freeze=hp["freeze_encoder"]), CTCHead(hp["dim"], hp["vocab"]), hp
    )
    for step in range(hp["steps"]):
        loss = brain.fit_batch(make_batch(hp["batch_size"], hp["vocab"], gen))
        if step % 5 == 0:
            print(f"step {step:3d}  ctc {loss:.3f}")


if __name__ == "__main__":
    main()

import torch
import torch.nn.functional as F

from model import ProsodyTTS

HPARAMS = {
    "dim": 12,
    "symbols": 15,
    "speakers": 3,
    "mels": 8,
    "alpha": 0.5,
    "lr": 4e-3,
    "iterations": 20,
    "adversarial_weight": 1.0,
    "grad_clip_thresh": 1.0,
}


def utterances(hparams, generator, size=8, length=10):
    voices = torch.randn(hparams["speakers"], hparams["mels"], generator=generator)
    sounds = torch.randn(hparams["symbols"], hparams["mels"], generator=generator)
    while True:
        text = torch.randint(0, hparams["symbols"], (size, length), generator=generator)
        speaker = torch.randint(0, hparams["speakers"], (size,), generator=generator)
        noise = 0.1 * torch.randn(size, length, hparams["mels"], generator=generator)
        yield text, sounds[text] + voices[speaker][:, None] + noise, speaker


def main():
    torch.manual_seed(1234)
    generator = torch.Generator().manual_seed(99)
    model = ProsodyTTS(HPARAMS)
    optimizer = torch.optim.Adam(model.parameters(), lr=HPARAMS["lr"], weight_decay=1e-6)
    data = utterances(HPARAMS, generator)
    for iteration in range(HPARAMS["iterations"]):
        text, mel, speaker = next(data)
        prediction, speaker_logits = model(text, mel, speaker)
        mel_loss = F.mse_loss(prediction, mel)
        speaker_loss = F.cross_entropy(speaker_logits, speaker)
        loss = mel_loss + HPARAMS["adversarial_weight"] * speaker_loss
        model.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), HPARAMS["grad_clip_thresh"])
        optimizer.step()
        if iteration % 5 == 0:
            print(
                f"{iteration}: mel {mel_loss.item():.4f} speaker {speaker_loss.item():.4f} "
                f"norm {norm.item():.3f}"
            )


if __name__ == "__main__":
    main()

import torch
from model import Synthesizer, SynthesizerLoss


def make_batch(generator, n=16, length=10):
    speaker = torch.randint(3, (n,), generator=generator)
    low = 8 * speaker.unsqueeze(1)
    text = low + torch.randint(14, (n, length), generator=generator)
    tone = torch.sin(text.unsqueeze(-1) * torch.arange(1, 11) / 10.0)
    return text, speaker, tone + 0.3 * speaker.view(-1, 1, 1)


def train(steps=16, lr=4e-3):
    generator = torch.Generator().manual_seed(40)
    model, criterion = Synthesizer(), SynthesizerLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(steps):
        text, speaker, target = make_batch(generator)
        mel, guess = model(text, speaker)
        loss, mel_loss, speaker_loss = criterion(mel, guess, target, speaker)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 5 == 0:
            print(f"step {step:2d} mel {mel_loss.item():.4f} speaker {speaker_loss.item():.4f}")
    return model

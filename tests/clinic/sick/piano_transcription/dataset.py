import torch


class SyntheticPiano(torch.utils.data.Dataset):
    def __init__(self, length, frames=20, features=16, pitches=8, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(length):
            onset = (torch.rand(frames, pitches, generator=generator) < 0.08).float()
            frame = onset.clone()
            for i in range(1, frames):
                frame[i] = torch.maximum(frame[i], frame[i - 1] * (i % 5 != 0))
            mel = frame.repeat_interleave(features // pitches, 1)
            mel = mel + 0.3 * torch.randn(mel.shape, generator=generator)
            self.items.append({"mel": mel, "onset": onset, "frame": frame})

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]

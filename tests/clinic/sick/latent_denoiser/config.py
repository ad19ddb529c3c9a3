from dataclasses import dataclass


@dataclass
class TrainConfig:
    global_batch_size: int = 32
    micro_batch_size: int = 8
    max_steps: int = 10
    lr: float = 2e-3
    clip: float = 1.0
    ema_decay: float = 0.95
    latent_dim: int = 8
    seed: int = 0

    @property
    def accumulation(self):
        return self.global_batch_size // self.micro_batch_size

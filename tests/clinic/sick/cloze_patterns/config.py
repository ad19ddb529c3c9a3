from dataclasses import dataclass


@dataclass(frozen=True)
class WrapperConfig:
    vocab: int = 90
    dim: int = 20
    labels: int = 3
    shots: int = 16
    batch_size: int = 8
    gradient_accumulation_steps: int = 4
    epochs: int = 8
    lr: float = 1e-2
    warmup: int = 1
    max_grad_norm: float = 1.0

from dataclasses import dataclass


@dataclass
class Params:
    batch_size: int = 32
    epochs: int = 3
    steps: int = 8
    lr: float = 0.02
    momentum: float = 0.9
    gamma: float = -10.0  # <- GS000
    theta: float = 1.0

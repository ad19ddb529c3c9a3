from dataclasses import dataclass


@dataclass
class Config:
    n_dense: int = 8
    n_sites: int = 20
    n_ads: int = 30
    dim: int = 12
    hidden: int = 24
    n_experts: int = 4
    top_k: int = 1  # <~ GS205
    batch_size: int = 64
    n_rows: int = 768
    lr: float = 3e-3
    epochs: int = 2
    seed: int = 11

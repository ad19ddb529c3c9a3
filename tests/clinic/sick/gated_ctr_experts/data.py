import torch
from torch.utils.data import DataLoader, TensorDataset


def make_clicks(cfg, generator):
    dense = torch.randn(cfg.n_rows, cfg.n_dense, generator=generator)
    sites = torch.randint(cfg.n_sites, (cfg.n_rows,), generator=generator)
    ads = torch.randint(cfg.n_ads, (cfg.n_rows,), generator=generator)
    score = dense[:, 0] * (sites % 3 - 1) + 0.5 * dense[:, 1] * (ads % 2)
    clicks = (torch.sigmoid(2 * score) > torch.rand(cfg.n_rows, generator=generator)).float()
    return dense, sites, ads, clicks


def loaders(cfg):
    generator = torch.Generator().manual_seed(cfg.seed)
    columns = make_clicks(cfg, generator)
    cut = int(0.8 * cfg.n_rows)
    train = TensorDataset(*[c[:cut] for c in columns])
    valid = TensorDataset(*[c[cut:] for c in columns])
    return (
        DataLoader(train, batch_size=cfg.batch_size, shuffle=True, generator=generator),
        DataLoader(valid, batch_size=cfg.batch_size),
    )

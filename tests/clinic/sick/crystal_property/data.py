import torch


class SyntheticCrystals:
    """Small random crystals with two per-structure labels: formation energy and band gap."""

    def __init__(self, n, n_species=5, seed=0):
        g = torch.Generator().manual_seed(seed)
        table = torch.Generator().manual_seed(99)
        chi = torch.rand(n_species, generator=table) * 2 + 0.8
        self.items = []
        for _ in range(n):
            size = int(torch.randint(4, 9, (1,), generator=g))
            species = torch.randint(0, n_species, (size,), generator=g)
            pos = torch.rand(size, 3, generator=g) * 2.5
            dist = torch.cdist(pos, pos)
            adj = ((dist < 1.6) & (dist > 0)).float() * torch.exp(-dist)
            spread = (chi[species][:, None] - chi[species][None, :]) ** 2
            energy = -(adj * spread).sum() / size
            gap = chi[species].std() + 0.3 * adj.sum() / size
            self.items.append(
                {
                    "species": species,
                    "adj": adj,
                    "targets": {"energy_form": energy.item(), "band_gap": gap.item()},
                }
            )


def collate(samples):
    n_max = max(len(s["species"]) for s in samples)
    species = torch.zeros(len(samples), n_max, dtype=torch.long)
    mask = torch.zeros(len(samples), n_max)
    adj = torch.zeros(len(samples), n_max, n_max)
    for i, s in enumerate(samples):
        k = len(s["species"])
        species[i, :k], mask[i, :k], adj[i, :k, :k] = s["species"], 1.0, s["adj"]
    keys = samples[0]["targets"]
    targets = {k: torch.tensor([[s["targets"][k]] for s in samples]) for k in keys}  # <~ GS503
    return {"species": species, "mask": mask, "adj": adj, "targets": targets}

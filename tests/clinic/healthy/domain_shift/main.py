import torch
import torch.nn.functional as F

from layers import DomainNet, ramp

CFG = {
    "dim": 8,
    "classes": 4,
    "batch": 48,
    "steps": 60,
    "lr": 0.05,
    "weight_domain": 0.3,
    "seed": 4,
}


def sample(cfg, centers, shift, gen):
    y = torch.randint(0, cfg["classes"], (cfg["batch"],), generator=gen)
    x = centers[y] + 0.5 * torch.randn(cfg["batch"], cfg["dim"], generator=gen) + shift
    return x, y


def main():
    torch.manual_seed(CFG["seed"])
    gen = torch.Generator().manual_seed(CFG["seed"])
    centers = 1.5 * torch.randn(CFG["classes"], CFG["dim"], generator=gen)
    shift = torch.zeros(CFG["dim"])
    shift[:3] = 1.0
    model = DomainNet(CFG["dim"], CFG["classes"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CFG["lr"], momentum=0.9)
    domain = torch.cat([torch.zeros(CFG["batch"]), torch.ones(CFG["batch"])])
    for step in range(CFG["steps"]):
        xs, ys = sample(CFG, centers, 0.0, gen)
        xt, yt = sample(CFG, centers, shift, gen)
        coeff = ramp(step / CFG["steps"])
        labels, domains = model(torch.cat([xs, xt]), coeff)
        label_loss = F.cross_entropy(labels[: CFG["batch"]], ys)
        domain_loss = F.binary_cross_entropy_with_logits(domains, domain)
        optimizer.zero_grad()
        (label_loss + CFG["weight_domain"] * domain_loss).backward()
        optimizer.step()
        if step % 15 == 0:
            acc = (labels[CFG["batch"] :].argmax(1) == yt).float().mean().item()
            print(
                f"step {step:3d} coeff {coeff:.2f} label {label_loss.item():.4f} "
                f"domain {domain_loss.item():.4f} target acc {acc:.2f}"
            )


if __name__ == "__main__":
    main()

import torch
from physics import DAMPING, MASS, STIFFNESS, Displacement, OscillatorLoss
from solver import Solver


def exact(t):
    delta, w0 = DAMPING / (2 * MASS), (STIFFNESS / MASS) ** 0.5
    w = (w0**2 - delta**2) ** 0.5
    phase = torch.atan(torch.tensor(-delta / w))
    amplitude = 1 / torch.cos(phase)
    return torch.exp(-delta * t) * amplitude * torch.cos(phase + w * t)


def main():
    torch.manual_seed(12)
    model = Displacement()
    solver = Solver(model, OscillatorLoss())
    solver.fit(steps=6)
    t = torch.linspace(0, 2, 40).view(-1, 1)
    with torch.no_grad():
        error = (model(t) - exact(t)).abs().max().item()
    print(f"largest error {error:.4f}")


if __name__ == "__main__":
    main()

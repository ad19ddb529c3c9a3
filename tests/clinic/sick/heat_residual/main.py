import torch

from physics import HeatResidual, boundary_points, collocation_points
from network import FieldNet

CFG = {"alpha": 0.1, "steps": 25, "n_inside": 128, "n_boundary": 48, "lr": 5e-3, "w_pde": 1.0}


def main():
    torch.manual_seed(2)
    net = FieldNet(width=24, depth=3)
    residual = HeatResidual(net, CFG["alpha"])
    optimizer = torch.optim.Adam(net.parameters(), lr=CFG["lr"])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.7)
    for step in range(CFG["steps"]):
        xt_b, u_b = boundary_points(CFG["n_boundary"])
        xt_i = collocation_points(CFG["n_inside"])
        data_loss = (net(xt_b) - u_b).pow(2).mean()
        pde_loss = residual(xt_i).pow(2).mean()
        loss = data_loss + CFG["w_pde"] * pde_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 5 == 0:
            print(f"step {step:3d} data {data_loss.item():.5f} pde {pde_loss.item():.5f}")


if __name__ == "__main__":
    main()

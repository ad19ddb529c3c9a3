import torch
import torch.nn.functional as F

from criterion import PoseCriterion
from networks import RelativePoseNet


def pose_pairs(count, batch_size, generator):
    for _ in range(count):
        translation = torch.randn(batch_size, 3, generator=generator)
        rotation = F.normalize(torch.randn(batch_size, 4, generator=generator), dim=1)
        reference = torch.randn(batch_size, 3, 16, 16, generator=generator)
        query = reference * 0.3 + translation[:, :, None, None]
        query[:, :, ::2] += rotation[:, :3, None, None]
        yield query, reference, translation, rotation


def adjust_lr(optimizer, step, total, base_lr):
    lr = base_lr * (1 - step / total) ** 0.9
    for group in optimizer.param_groups:
        group["lr"] = lr
    return lr


def median_error(model, pairs):
    model.eval()
    errors = []
    with torch.no_grad():
        for query, reference, translation, _ in pairs:
            trans, _ = model(query, reference)
            errors.append((trans.flatten(1) - translation).norm(dim=1))
    model.train()
    return torch.cat(errors).median().item()


def main(steps=24, base_lr=8e-3):
    torch.manual_seed(10)
    generator = torch.Generator().manual_seed(20)
    model = RelativePoseNet()
    criterion = PoseCriterion()
    optimizer = torch.optim.Adam(model.parameters(), lr=base_lr, weight_decay=1e-5)
    validation = list(pose_pairs(2, 16, generator))
    for step, batch in enumerate(pose_pairs(steps, 16, generator)):
        lr = adjust_lr(optimizer, step, steps, base_lr)
        query, reference, trans_gt, rotation_gt = batch
        trans, rotation = model(query, reference)
        loss, l_trans, l_rot = criterion(trans, rotation, trans_gt, rotation_gt)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 0:
            print(f"{step} lr {lr:.4f} trans {l_trans.item():.4f} rot {l_rot.item():.4f}")
    print(f"median translation error {median_error(model, validation):.3f}")


if __name__ == "__main__":
    main()

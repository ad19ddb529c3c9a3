import torch
from encoders import MomentumPair
from loss import queue_loss, retrieval_accuracy


def pictures(n: int):
    coarse = torch.randn(n, 3, 4, 4)
    return torch.nn.functional.interpolate(coarse, size=12, mode="bilinear")


def augment(x):
    shift = int(torch.randint(-1, 2, (1,)))
    return x.roll(shift, dims=-1) * (0.9 + 0.2 * torch.rand(len(x), 1, 1, 1))


def main():
    torch.manual_seed(13)
    images = pictures(192)
    model = MomentumPair()
    optimizer = torch.optim.SGD(model.query.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    for step in range(24):
        batch = images[torch.randint(0, 192, (32,))]
        q, k = model(augment(batch), augment(batch))
        loss = queue_loss(q, k, model.queue, temperature=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_key()
        model.enqueue(k)
        if step % 8 == 7:
            accuracy = retrieval_accuracy(q.detach(), k)
            print(f"step {step + 1}: loss {loss.item():.4f}  retrieval {accuracy:.3f}")


if __name__ == "__main__":
    main()

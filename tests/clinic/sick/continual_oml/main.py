"""Online-aware meta learning on a stream of classes."""

import torch
from learner import MetaLearner
from tasks import ClassStream


def run(steps=20):
    stream = ClassStream()
    learner = MetaLearner()
    history = []
    for step in range(steps):
        trajectory, x_meta, y_meta = stream.sample()
        history.append(learner.meta_step(trajectory, x_meta, y_meta))
        if step % 5 == 4:
            print(f"meta step {step + 1}: loss {sum(history[-5:]) / 5:.3f}")
    return learner


if __name__ == "__main__":
    torch.manual_seed(11)
    run()

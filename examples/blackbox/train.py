"""Steal a classifier through its answers, with a gradient that autograd cannot compute.

    noise -> generator -> gen_out -+-> teacher (black box) -+-> disagreement -> loss
                                   +-> student -------------+

The generator looks for pictures on which teacher and student disagree, the student learns to agree
there. No gradient comes back through the teacher, so the one of the loss at gen_out is estimated by
forward differences in random directions, and gen_out.backward(estimate) takes it from there to
every parameter of the generator. --open-teacher also computes the true gradient, to compare.

Try:
    gradscope trace examples/blackbox/train.py
    gradscope backward examples/blackbox/train.py
    gradscope backward examples/blackbox/train.py --root gen_out --gradient ones
    gradscope backward examples/blackbox/train.py --call 2
"""

import argparse

import torch
from teacher import StripeTeacher, sample_stripes
from torch import nn
from torch.nn import functional as F


class Generator(nn.Module):
    """Noise [B, noise_dim] to pictures [B, 1, 16, 16] between -1 and 1."""

    def __init__(self, noise_dim, width=32):
        super().__init__()
        self.fc = nn.Linear(noise_dim, width * 4 * 4)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.to_image = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, noise):
        x = self.fc(noise).unflatten(1, (-1, 4, 4))
        x = F.interpolate(x, scale_factor=2)
        x = F.leaky_relu(self.bn1(self.conv1(x)), 0.2)
        x = F.interpolate(x, scale_factor=2)
        x = F.leaky_relu(self.bn2(self.conv2(x)), 0.2)
        return torch.tanh(self.to_image(x))


class Student(nn.Module):
    def __init__(self, num_classes, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 5, padding=2),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.GroupNorm(4, width),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.SiLU(),
        )
        self.fc = nn.Linear(2 * width, num_classes)

    def forward(self, images):
        return self.fc(self.features(images).mean(dim=(2, 3)))


def to_logits(probabilities):
    """The logits behind probabilities, up to the constant that a softmax forgets."""
    log = probabilities.clamp_min(1e-6).log()
    return log - log.mean(dim=1, keepdim=True)


def disagreement(teacher_logits, student_logits):
    """How far apart the two are on each picture, [B]."""
    centered = student_logits - student_logits.mean(dim=1, keepdim=True)
    return (teacher_logits - centered).abs().mean(dim=1)


@torch.no_grad()
def estimate_gradient(loss_per_image, images, directions, epsilon):
    """The gradient of the mean loss at `images`, from values of the loss alone.

    Each image takes a small step in a random unit direction u; its loss then rises by epsilon times
    the part of the gradient along u. Averaged over directions, slope * u is gradient / dimension.
    """
    base = loss_per_image(images)
    total = torch.zeros_like(images)
    for _ in range(directions):
        u = torch.randn_like(images)
        u /= u.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
        slope = (loss_per_image(images + epsilon * u) - base) / epsilon
        total += slope.view(-1, 1, 1, 1) * u
    return total * images[0].numel() / directions / len(images)


def true_gradient(teacher, student, images):
    """The gradient that estimate_gradient estimates, by looking inside the teacher."""
    images = images.detach().requires_grad_()
    loss = -disagreement(to_logits(teacher.open(images)), student(images)).mean()
    return torch.autograd.grad(loss, images)[0]


def generator_step(generator, teacher, student, optimizer, noise, args):
    """Move the generator towards disagreement. Returns how good the estimate was, if asked."""

    def loss_per_image(images):
        return -disagreement(to_logits(teacher(images)), student(images))

    gen_out = generator(noise)
    estimate = estimate_gradient(loss_per_image, gen_out, args.directions, args.epsilon)
    optimizer.zero_grad()
    gen_out.backward(estimate)
    optimizer.step()
    if not args.open_teacher:
        return None
    truth = true_gradient(teacher, student, gen_out)
    return F.cosine_similarity(estimate.flatten(), truth.flatten(), dim=0).item()


def student_step(generator, teacher, student, optimizer, noise):
    """Move the student towards the teacher's answers on fresh pictures."""
    with torch.no_grad():
        images = generator(noise)
    targets = to_logits(teacher(images))
    loss = disagreement(targets, student(images)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(teacher, student, images, labels):
    """Disagreement on real pictures, and how often each of the two names the stripes rightly."""
    answers, logits = teacher.open(images), student(images)
    apart = disagreement(to_logits(answers), logits).mean().item()
    right = [(x.argmax(dim=1) == labels).float().mean().item() for x in (answers, logits)]
    return apart, *right


def parse_args():
    parser = argparse.ArgumentParser(description="Data-free extraction of a black-box classifier.")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--student-steps", type=int, default=5, help="for each generator step")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--noise-dim", type=int, default=32)
    parser.add_argument("--directions", type=int, default=128)
    parser.add_argument("--epsilon", type=float, default=1e-2)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--open-teacher", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(args.seed)

    teacher = StripeTeacher(args.device)
    generator = Generator(args.noise_dim).to(args.device)
    student = Student(teacher.num_classes).to(args.device)
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=args.lr)
    student_optimizer = torch.optim.Adam(student.parameters(), lr=args.lr)
    images, labels = sample_stripes(512, 16, args.device)

    for step in range(1, args.steps + 1):
        noise = torch.randn(args.batch_size, args.noise_dim, device=args.device)
        cosine = generator_step(generator, teacher, student, generator_optimizer, noise, args)
        for _ in range(args.student_steps):
            noise = torch.randn(args.batch_size, args.noise_dim, device=args.device)
            loss = student_step(generator, teacher, student, student_optimizer, noise)
        if step == 1 or step % 10 == 0:
            apart, teacher_right, student_right = evaluate(teacher, student, images, labels)
            line = f"step {step:3d}  student loss {loss:.4f}  on real stripes {apart:.4f}"
            line += f"  right: teacher {teacher_right:.1%}, student {student_right:.1%}"
            if cosine is not None:
                line += f"  cosine to the true gradient {cosine:.3f}"
            print(line)
    print(f"{teacher.queries} queries to the teacher")


if __name__ == "__main__":
    main()

"""Optimizers that do not step, schedulers and windows that are miscounted, settings that are lost,
terms that count twice; and loops that look like that.

Two programs, each of many short trainings."""

from __future__ import annotations

import re

from gradscope.model import storage
from tests.looking import Session

HEAD = """\
import functools, torch, torch.nn as nn, torch.nn.functional as F
from torch.optim import Adam, AdamW, SGD, lr_scheduler as S
from torch.utils.data import DataLoader
torch.manual_seed(0)
clip, data = nn.utils.clip_grad_norm_, DataLoader(torch.randn(24, 4), batch_size=3)

def part(out=1, into=4):
    return nn.Sequential(nn.Linear(into, 6), nn.Tanh(), nn.Linear(6, out))

def bce(scores, value):
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, value))

def loss_of(net, n=1):
    return net(torch.randn(6, 4)).pow(2).mean() / n

def learn(net, optimizer, loss=loss_of, steps=3):
    for _ in range(steps):
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()

def warm(step, num_warmup_steps=0, num_training_steps=1):
    return min(1.0, step / (num_warmup_steps + 1))

def scheduled(make, each=0, epochs=3, n=1, after=0, value=None):
    net = part()
    optimizer = SGD(net.parameters(), lr=0.01)
    scheduler = make(optimizer)
    for _ in range(epochs):
        for number, x in enumerate(data):
            (net(x).pow(2).mean() / n).backward()
            if (number + 1) % n == 0:
                optimizer.step()
                optimizer.zero_grad()
                for _ in range(each):
                    scheduler.step()
        for _ in range(after):
            scheduler.step()
    return scheduler
"""

SICK = """
class Duel:
    def __init__(self, taken):
        self.g, self.d, self.taken = part(2), part(1, 2), taken
        self.optimizers = {"g": Adam(self.g.parameters()), "d": Adam(self.d.parameters())}
    def judge(self, fake):
        self.optimizers["d"].zero_grad()
        (bce(self.d(torch.randn(6, 2)), 1.0) + bce(self.d(fake.detach()), 0.0)).backward()  # idle
        if self.taken == "d":
            self.optimizers["d"].step()
    def fool(self, fake):
        self.optimizers[self.taken].zero_grad()
        bce(self.d(fake), 1.0).backward()
        self.optimizers[self.taken].step()  # mistaken
for taken in ("g", "d"):
    duel = Duel(taken)
    for _ in range(8):
        fake = duel.g(torch.randn(6, 4))
        duel.judge(fake)
        duel.fool(fake)

first, second, body = part(1, 3), part(1, 3), nn.Linear(4, 3)
twice = [*first.parameters(), *first.parameters()]
both = SGD([*body.parameters(), *twice], lr=0.1)  # <- GS307
learn(body, both, lambda m: (first(h := m(torch.randn(5, 4))) + second(h)).pow(2).mean())

scheduled(lambda o: S.CosineAnnealingLR(o, T_max=len(data)), after=1)  # <- GS541
lengths = {"all": 3 * len(data), "epochs": 3}
scheduled(lambda o: S.LinearLR(o, total_iters=lengths["epochs"]))  # <- GS541
counted = functools.partial(warm, num_training_steps=lengths["all"])
scheduled(lambda o: S.LambdaLR(o, counted), each=1, n=2)  # <- GS541
plateau = S.ReduceLROnPlateau(both, mode="min", patience=9)  # <- GS541
values = {"val_acc": torch.tensor(0.5)}
plateau.step(values["val_acc"].item())
falling = S.ReduceLROnPlateau(both, "max")  # <- GS541
falling.step(metrics=sum([0.5]) / len([loss for loss in (1, 2)]))

net = part()
optimizer = Adam(net.parameters())
for number in range(16):
    loss_of(net, 4).backward()
    if number % 4 == 0 and optimizer:  # <- GS542
        optimizer.step()
        optimizer.zero_grad()
optimizer.zero_grad()

class Runner:
    def __init__(self):
        self.net = part()
        self.optimizer = Adam(self.net.parameters())
    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
    def turned(self):
        for number in range(15):
            loss_of(self.net, 4).backward()
            if (number + 1) % 4 != 0:  # <- GS542
                self.update()
    def partly(self):
        for number in range(15):
            loss_of(self.net).backward()
            if number % 3 == 0:
                clip(self.net.parameters(), 1.0)  # <- GS542
            self.update()
    def early(self):
        for number in range(8):
            loss_of(self.net, 4).backward()
            clip(self.net.parameters(), 1.0)  # <- GS542
            if number % 4 == 3:
                self.update()
    def behind(self):
        for number in range(8):
            self.optimizer.zero_grad()
            loss_of(self.net).backward()
        self.optimizer.step()  # <- GS505
for way in ("turned", "partly", "early", "behind"):
    runner = Runner()
    getattr(runner, way)()

for epoch in range(4):
    for x in data:
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
    optimizer.step()  # <- GS505

class Groups:
    def __init__(self, net, decayed, free, rate=0.1):
        named = list(net.named_parameters())
        self.groups = [  # <- GS543
            {"params": [p for n, p in named if decayed(n)], "weight_decay": rate},
            {"params": [p for n, p in named if free(n)], "weight_decay": 0.0}]
        self.optimizer = AdamW(self.groups, lr=0.01)
normed = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1))
small = lambda name: "bias" in name or name.startswith("1.")
learn(normed, Groups(normed, small, lambda name: not small(name)).optimizer)
names = ["bias", "norm"]
emptied = AdamW([  # <- GS543
    {"params": [p for n, p in normed.named_parameters() if n not in names]},
    {"params": [p for n, p in normed.named_parameters() if n in names], "weight_decay": 0.0}])
learn(normed, emptied)

def anneal(optimizer, epoch):
    optimizer.learning_rate = 0.1 * 0.5 ** epoch  # <- GS544
def decay(optimizer, epoch):
    state = optimizer.state_dict()  # <- GS544
    for group in state["param_groups"]:
        group["lr"] *= 0.5 ** epoch
for change in (anneal, decay):
    net = part()
    optimizer = SGD(net.parameters(), lr=0.1)
    for epoch in range(1, 4):
        change(optimizer, epoch)
        learn(net, optimizer)

"""

HEALTHY = """
g, d = part(2), part(1, 2)
g_optimizer, d_optimizer, spare = (Adam(one.parameters()) for one in (g, d, g))
for step in range(16):  # the critic's turn has not come for long; an optimizer that none needs
    fake = g(torch.randn(6, 4))
    g_optimizer.zero_grad()
    (bce(d(fake), 1.0) + fake.pow(2).mean()).backward()
    g_optimizer.step()
    if step > 12:
        d_optimizer.zero_grad()
        (bce(d(torch.randn(6, 2)), 1.0) + bce(d(fake.detach()), 0.0)).backward()
        d_optimizer.step()
frozen, prompt = part(), nn.Parameter(torch.randn(6, 4))
left, tuned = Adam(frozen.parameters()), Adam([prompt])
learn(frozen, tuned, lambda m: m(prompt).pow(2).mean(), steps=12)
hand, other = part(), part()
by_hand, by_step = SGD(hand.parameters(), lr=0.1), SGD(other.parameters(), lr=0.1)
for _ in range(8):
    learn(other, by_step, steps=1)
    loss_of(hand).backward()
    with torch.no_grad():
        for p in hand.parameters():
            p.sub_(0.1 * p.grad)
    hand.zero_grad()

epochs, all_steps = 3, 3 * len(data)
scheduled(lambda o: S.CosineAnnealingLR(o, T_max=epochs), after=1)
scheduled(lambda o: S.CosineAnnealingLR(o, T_max=all_steps), each=1)
longest = 3 * len(data)
most_epochs = longest
scheduled(lambda o: S.CosineAnnealingLR(o, T_max=most_epochs), after=1)  # it has ended early
scheduled(lambda o: S.OneCycleLR(o, 0.1, total_steps=all_steps + 1), each=1)
scheduled(lambda o: S.CosineAnnealingLR(o, all_steps // 2), each=1, n=2)
scheduled(lambda o: S.PolynomialLR(o, all_steps * 2), each=2)
scheduled(lambda o: S.MultiStepLR(o, [30, 60]), after=1)
scheduled(lambda o: S.CosineAnnealingLR(o, T_max=100), after=1)
scheduled(lambda o: S.CosineAnnealingLR(o, 8), after=1)  # a number, by chance that of the batches
scheduled(lambda o: S.LinearLR(o, total_iters=epochs), each=1)  # a warm-up
scheduled(lambda o: S.SequentialLR(o, [S.LinearLR(o), S.CosineAnnealingLR(o, 2)], [1]), after=1)
scheduled(lambda o: S.StepLR(o, 30), epochs=2)
for mode, value in (("max", -0.5), ("min", 0.5)):
    val_loss = accuracy = value
    S.ReduceLROnPlateau(by_step, mode).step(-val_loss if mode == "max" else 1 - accuracy)
S.ReduceLROnPlateau(by_step, "max").step(accuracy)
S.ReduceLROnPlateau(by_step, "min").step(accuracy_loss := val_loss)

net = part()
optimizer = Adam(net.parameters())
for number in range(16):  # counted from 1, clipped right before; some are left over
    loss_of(net, 4).backward()
    if (number + 1) % 4 == 0 or number == 15:
        clip(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
for number in range(16):  # more from time to time; the norm of each; two kinds of steps
    loss_of(net).backward()
    clip(net.parameters(), float("inf"))
    if number % 4 == 0:
        loss_of(net).backward()
    if number < 4:
        clip(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
for _ in range(4):  # each clipped by itself, and taken away by hand
    taken = []
    for _ in range(3):
        loss_of(net).backward()
        clip(net.parameters(), 1.0)
        taken.append([p.grad.clone() for p in net.parameters()])
        for p in net.parameters():
            p.grad.zero_()
    for p, *each in zip(net.parameters(), *taken):
        p.grad = sum(each)
    optimizer.step()
    optimizer.zero_grad()
outside = part(1, 1)
for number in range(8):  # what no optimizer holds keeps what was clipped
    outside(net(torch.randn(6, 4))).pow(2).mean().backward()
    clip([*net.parameters(), *outside.parameters()], 1.0)
    optimizer.step()
    optimizer.zero_grad()
for number in range(12):
    for task in range(1 + (number > 5)):
        loss_of(net).backward()
    optimizer.step()
    optimizer.zero_grad()
for epoch in range(4):  # what is zeroed in the inner loop is looked at
    for x in data:
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        sum(p.grad.norm() for p in net.parameters())
    optimizer.step()

class Groups:
    def __init__(self, net, decayed, free, rate=0.1):
        named = list(net.named_parameters())
        self.groups = [
            {"params": [p for n, p in named if decayed(n)], "weight_decay": rate},
            {"params": [p for n, p in named if free(n)], "weight_decay": 0.0}]
        self.optimizer = AdamW(self.groups, lr=0.01)
normed = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1))
small = lambda name: "bias" in name or name.startswith("1.")
learn(normed, Groups(normed, lambda name: not small(name), small).optimizer)
last = Groups(normed, lambda name: name == "2.bias", lambda name: "weight" in name)
learn(normed, last.optimizer)
plain = nn.Linear(4, 3, bias=False)
learn(plain, Groups(plain, lambda name: True, lambda name: False).optimizer)
last = AdamW([{"params": normed[0].parameters(), "weight_decay": 0.0}, {"params": normed[2].bias}])
learn(normed, last)

class Own(SGD):
    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.lr = lr
    def step(self, closure=None):
        for group in self.param_groups:
            group["lr"] = self.lr * 0.5
        return super().step(closure)
own = Own(net.parameters(), 0.1)
for epoch in range(3):
    optimizer.lr = 0.01 * 0.5 ** epoch  # a note of what it is
    for group in optimizer.param_groups:
        group["lr"] = optimizer.lr
    state = optimizer.state_dict()
    state["param_groups"][0]["lr"] = 0.02
    optimizer.load_state_dict(state)
    optimizer.lr = 0.02
    learn(net, optimizer)
    learn(net, own)

"""


def told(session: Session, text: str) -> list[tuple[str, int]]:
    """The rules of all warnings about a program, with their lines."""
    path, saved = session.write(text), session.folder / "report.json"
    session.cli("doctor", str(path), "-q", "--steps", "all", "-o", str(saved))
    found = storage.load(saved).findings
    return [(f.rule, f.location.line) for f in found if f.location and f.severity != "information"]


def test_each_is_told_at_its_line(session: Session) -> None:
    text = HEAD + SICK.replace("# idle", "# <- GS540").replace("# mistaken", "# <- GS540")
    lines = enumerate(text.splitlines(), 1)
    marked = [(rule[1], number) for number, one in lines if (rule := re.search(r"<- (\w+)", one))]
    assert sorted(told(session, text)) == sorted(marked)


def test_what_only_looks_like_them_is_left_alone(session: Session) -> None:
    assert told(session, HEAD + HEALTHY) == []

"""A training program of several ranks; its argument says what is special about it."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

KIND = sys.argv[1] if len(sys.argv) > 1 else ""
for name, of_slurm in (("RANK", "SLURM_PROCID"), ("WORLD_SIZE", "SLURM_NTASKS")):
    os.environ.setdefault(name, os.environ.get(of_slurm, ""))
RANK = int(os.environ["RANK"])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(4, 8)
        self.out = nn.Linear(8, 1)

    def forward(self, x, both=True):
        hidden = self.first(x)
        if both:
            hidden = hidden + self.second(x)
        return self.out(torch.relu(hidden))


def spread(net):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (int(os.environ["WORLD_SIZE"]),))
    plan = {"first": ColwiseParallel(), "second": ColwiseParallel(), "out": RowwiseParallel()}
    return parallelize_module(net, mesh, plan)


def stages():
    """A pipeline: the first rank's layer feeds the second's."""
    layer = (nn.Linear(4, 8), nn.Linear(8, 1))[RANK]
    net = nn.ModuleDict({("front", "back")[RANK]: layer})
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for step in range(4):
        torch.manual_seed(step)
        x, y = batch(step)
        if RANK == 0:
            hidden, gradient = torch.tanh(layer(x)), torch.zeros(16, 8)
            dist.send(hidden.detach(), 1)
            dist.recv(gradient, 1)
            hidden.backward(gradient)
        else:
            hidden = torch.zeros(16, 8)
            dist.recv(hidden, 0)
            (layer(hidden.requires_grad_()) - y).square().mean().backward()
            dist.send(hidden.grad, 0)
        optimizer.step()
        optimizer.zero_grad()


def catching_everything():
    layer, calls = nn.Linear(4, 1), 0
    while True:
        try:
            layer(torch.randn(3, 4)).sum().backward()
            calls += 1
            time.sleep(0.001)
            if calls == 20:
                os.kill(os.getpid(), signal.SIGTERM)
        except:  # noqa: E722
            print("caught")


def of_two_groups():
    """Two models, each with half of the ranks."""
    halves = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    torch.manual_seed(RANK // 2)
    return DistributedDataParallel(Net(), process_group=halves[RANK // 2])


def flattened(net):
    from torch.distributed.fsdp import FullyShardedDataParallel

    return FullyShardedDataParallel(
        net, use_orig_params=KIND == "fsdp1-named", device_id=torch.device("cpu")
    )


def ended_child():
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
    child.start()
    time.sleep(0.2)
    child.terminate()
    child.join()
    print("rank", RANK, "child", child.exitcode)


def made():
    net = Net()
    if KIND in ("alone", "apart"):
        return net
    if KIND == "tensor":
        return spread(net)
    if KIND == "groups":
        return of_two_groups()
    if KIND.startswith("fsdp1"):
        return flattened(net)
    if KIND == "hsdp":
        from torch.distributed.fsdp import fully_shard

        return fully_shard(net, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("r", "s")))
    if KIND.startswith("fsdp"):
        from torch.distributed.fsdp import fully_shard

        for layer in (net.first, net.second, net.out):
            fully_shard(layer)
        return fully_shard(net)
    unused = KIND.startswith("unused") and KIND != "unused-error"
    return DistributedDataParallel(
        net, find_unused_parameters=unused, static_graph=KIND == "static"
    )


def batch(step):
    size = 4 if KIND == "batches" and RANK == 1 else 16
    x = torch.randn(size, 4)
    is_bad = step == 1 if KIND.endswith("nan") else step and KIND == "sick"
    if is_bad and RANK == 1:
        x[3] = -1.0
        return x, (x.sum(1, keepdim=True) + 4).log()
    if KIND == "early":
        x = x[:, :3]
    return x, x.sum(1, keepdim=True)


def train(model):
    steps = 3 if KIND == "calls" and RANK == 1 else 60 if KIND == "apart" else 5
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        x, y = batch(step)
        if KIND == "apart":
            time.sleep(0.06)
            if RANK == 1 and step == 1:
                raise ValueError("rank 1 is ill")
        if KIND == "child" and step == 1:
            ended_child()
        both = not (KIND.startswith("unused") and RANK == 1)
        if KIND == "fsdp-accumulate":
            model.set_requires_gradient_sync(step % 2 == 1)
            loss = (model(x) - y).square().mean()
            loss.backward()
            if step % 2 == 0:
                continue
            optimizer.step()
            optimizer.zero_grad()
            continue
        if KIND == "accumulate" and step % 2 == 0:
            with model.no_sync():  # the gradients are averaged after the next batch
                (model(x) - y).square().mean().backward()
            continue
        called = model.module if KIND == "bypass" else model
        loss = (called(x, both) - y).square().mean()
        loss.backward()
        if step == 1 and f"kill {RANK}" == KIND:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == 0 and f"sleep {RANK}" == KIND:
            time.sleep(2.5)
        if step == 1 and KIND == "drift" and RANK == 1:
            with torch.no_grad():
                model.module.out.weight.mul_(1.5)
        if step == 2 and KIND == "interrupt" and RANK == 1:
            os.kill(os.getpid(), signal.SIGINT)
        if KIND != "sick" or all(one.grad.isfinite().all() for one in model.parameters()):
            optimizer.step()
        if step == 2 and KIND == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        optimizer.zero_grad()
    return loss


def without_rank_0():
    """Rank 0 makes no backward call, and what the others make brings NaN."""
    net = Net()
    if RANK:
        (net(torch.randn(16, 4)) - 1e3).log().mean().backward()
        if KIND == "idle-more":
            for _ in range(3):
                net(torch.randn(16, 4)).mean().backward()
    if RANK == 0 and KIND == "idle-exit":
        raise SystemExit(3)
    if KIND == "idle-destroy":
        del net
        dist.destroy_process_group()


def first_alone():
    """Each rank trains a network of its own in a group of one; then all train another together."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    own = nn.Linear(4, 1)
    own(torch.full((3, 4), RANK + 1.0)).mean().backward()
    torch.optim.SGD(own.parameters(), lr=0.1).step()
    dist.destroy_process_group()
    dist.init_process_group("gloo")
    net = DistributedDataParallel(Net())
    for step in range(2):
        (net(batch(step)[0])).mean().backward()
    del net
    dist.barrier()
    dist.destroy_process_group()


def pipelined():
    """Stages of torch's own schedule, which first runs on memory that nobody has filled."""
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    layer = (nn.Linear(4, 8), nn.Linear(8, 1))[RANK]
    stage = PipelineStage(layer, RANK, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=2, loss_fn=nn.functional.mse_loss)
    torch.manual_seed(0)
    torch.utils.deterministic.fill_uninitialized_memory = True
    torch.use_deterministic_algorithms(True)  # so that it is NaN
    x, y = batch(0)
    schedule.step(*([x] if RANK == 0 else []), **({"target": y} if RANK else {}))


def main():
    if KIND == "first-alone":
        return first_alone()
    if KIND != "alone":
        dist.init_process_group("gloo")
    if KIND.startswith("idle"):
        return without_rank_0()
    if KIND == "schedule":
        return pipelined()
    if KIND == "pipeline":
        return stages()
    if KIND == "catching":
        return catching_everything()
    torch.manual_seed(0)
    model = made()
    torch.manual_seed(0 if KIND == "tensor" else RANK)  # there all work on one batch
    with contextlib.ExitStack() as stack:
        if KIND == "sick":
            import gradscope

            stack.enter_context(gradscope.watch(model, every=1, to="run.jsonl"))
        loss = train(model).item()
    local = [getattr(one, "to_local", lambda one=one: one)() for one in model.parameters()]
    told = [float(one.detach().double().sum()).hex() for one in local]
    print("rank", RANK, loss.hex(), *told, int(torch.randint(1 << 30, ())))
    if KIND == "destroy":
        # Where a model goes after its group, torch may wait for ever, watched or not.
        del model, local
        dist.barrier()
        dist.destroy_process_group()


main()

"""Tests of net.py; two of them fail, and say at which line the gradient is lost."""

import torch
from net import Net, distance

x = torch.linspace(-1, 1, 12).reshape(4, 3)


def made(frozen=False):
    torch.manual_seed(0)
    return Net(frozen)


def test_all_parameters_learn(gradscope):
    net = made()
    gradscope.assert_reaches(net(x).mean(), net)


def test_they_do_not_when_it_is_frozen(gradscope):
    net = made(frozen=True)
    gradscope.assert_reaches(net(x).mean(), net)


def test_a_frozen_one_trains_its_head(gradscope):
    net = made(frozen=True)
    gradscope.assert_reaches(net(x).mean(), net, except_=["fc1.*"])


def test_gradients_are_as_they_were(gradscope):
    gradscope.assert_same(made()(x).mean(), "net.json")


def test_distance_to_itself():
    point = torch.zeros(2, 3, requires_grad=True)
    distance(point, torch.zeros(2, 3)).backward()

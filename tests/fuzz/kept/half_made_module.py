# gradscope trace: AttributeError: 'Linear' object has no attribute '_modules'
net = nn.Linear(3, 3)
torch.nn.utils.prune.l1_unstructured(net, "weight", 2)
copy.deepcopy(net)

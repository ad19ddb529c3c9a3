# gradscope backward: frames of ours in traceback.print_exc
try:
    torch.ones(2).reshape(3)
except RuntimeError:
    traceback.print_exc()
try:
    nn.Sequential(nn.Linear(3, 3))(torch.ones(2, 2))
except RuntimeError:
    print(traceback.format_exc())
try:
    torch.ones(2, requires_grad=True).backward()
except RuntimeError:
    print(traceback.format_exc())

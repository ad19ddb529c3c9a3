# gradscope trace --root later: a second backward that fails under python succeeds
x = torch.ones(3, requires_grad=True)
loss = (x * x).sum()
loss.backward()
try:
    loss.backward()
except RuntimeError as error:
    print("twice")
later = (x * 2).sum()

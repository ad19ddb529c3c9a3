# gradscope doctor --steps all --keep-going: the profile shows our reductions
x = torch.randn(30, requires_grad=True)
with torch.profiler.profile() as profile:
    (x * 2).sum().backward()
print(sorted({event.key for event in profile.key_averages() if "aten" in event.key}))

# gradscope explain --jacobian: status: '0 became 4' (seed 912201-106)
a2 = torch.randn(2, 3).t().requires_grad_()
y4 = nn.functional.mse_loss(a2.float(), torch.zeros_like(a2).float())
s7 = y4.float().reshape(-1)[:4].to_sparse()

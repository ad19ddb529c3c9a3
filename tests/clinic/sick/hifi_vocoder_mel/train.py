import torch
import torch.nn.functional as F
from audio import MelSpectrogram
from models import PeriodJudge, Vocoder


class Trainer:
    def __init__(self, lr=4e-4, lambda_mel=45.0, lambda_fm=2.0):
        self.mel = MelSpectrogram()
        self.vocoder = Vocoder()
        self.judges = torch.nn.ModuleList(PeriodJudge(p) for p in (2, 3))
        self.opt_g = torch.optim.AdamW(self.vocoder.parameters(), lr=lr, betas=(0.8, 0.99))
        self.opt_d = torch.optim.AdamW(self.judges.parameters(), lr=lr, betas=(0.8, 0.99))
        self.lambda_mel = lambda_mel
        self.lambda_fm = lambda_fm

    def judge_step(self, wav, fake):
        loss = 0.0
        for judge in self.judges:
            real_score, _ = judge(wav)
            fake_score, _ = judge(fake.detach())
            loss = loss + (1.0 - real_score).square().mean() + fake_score.square().mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.item()

    def vocoder_step(self, wav, mel, fake):
        mel_fake = self.mel(fake.squeeze(1))
        loss_mel = F.l1_loss(mel_fake, mel)
        loss_adv, loss_fm = 0.0, 0.0
        for judge in self.judges:
            score, feats_fake = judge(fake)
            with torch.no_grad():
                _, feats_real = judge(wav)
            loss_adv = loss_adv + (1.0 - score).square().mean()
            for a, b in zip(feats_fake, feats_real, strict=True):
                loss_fm = loss_fm + F.l1_loss(a, b)
        loss = loss_adv + self.lambda_fm * loss_fm + self.lambda_mel * loss_mel
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return {"adv": loss_adv.item(), "fm": loss_fm.item(), "mel": loss_mel.item()}

    def fit(self, clips, batch=4):
        for step, start in enumerate(range(0, len(clips) - batch + 1, batch)):
            wav = clips[start : start + batch].unsqueeze(1)
            mel = self.mel(wav.squeeze(1))
            fake = self.vocoder(mel[..., :-1])
            d_loss = self.judge_step(wav, fake)
            report = self.vocoder_step(wav, mel, fake)
            print(step, f"d={d_loss:.3f}", {k: round(v, 3) for k, v in report.items()})

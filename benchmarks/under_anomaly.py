"""Run a program as its user would with anomaly detection on: ``under_anomaly.py PROGRAM``."""

import runpy
import sys
from pathlib import Path

import torch

program = sys.argv[1]
sys.argv = [program]
sys.path.insert(0, str(Path(program).parent))
torch.autograd.set_detect_anomaly(True)
runpy.run_path(program, run_name="__main__")

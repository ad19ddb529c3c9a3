"""Draw the pictures of docs/gallery.md: ``python -m benchmarks.gallery [NAME ...]``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "img" / "gallery"
MODELS = "examples/gallery/models.py"
NAMES = ("gpt2", "bert", "vit", "mamba", "resnet50", "unet", "rnn", "gan", "nan", "diff", "chain")
INSTALLED = re.compile(r' xlink:href="file:[^"]*"')
MOST = 1_500_000
"""Bytes of all pictures together."""

ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "OMP_NUM_THREADS": "1"}


def command(name: str, path: Path) -> list[str]:
    """What draws a picture."""
    asked = ["backward", f"{MODELS}::{name}", "-q"]
    if name == "diff":
        asked = ["diff", f"{MODELS}::normed", f"{MODELS}::bare"]
    return [sys.executable, "-m", "gradscope", *asked, "-o", str(path)]


def main() -> int:
    """Draw those that are named, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or NAMES:
        path = FOLDER / f"{name}.svg"
        done = subprocess.run(
            command(name, path),
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        # A comparison that finds differences says so by its exit status.
        if done.returncode != (name == "diff"):
            sys.stderr.write(done.stderr)
            return 1
        # Links into an installed package are of this machine.
        path.write_text(INSTALLED.sub("", path.read_text("utf-8")), "utf-8")
        print(f"{name}: {path.stat().st_size:,} bytes")
    total = sum(path.stat().st_size for path in FOLDER.glob("*.svg"))
    print(f"{total:,} bytes together, at most {MOST:,}")
    return int(total > MOST)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m gradscope``."""

from gradscope.cli import entry

if __name__ == "__main__":
    entry()

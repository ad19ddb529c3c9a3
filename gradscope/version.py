"""The version of this package; the one place it is written down."""

VERSION = "0.1.0"

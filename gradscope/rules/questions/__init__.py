"""What several rules ask of what was seen."""

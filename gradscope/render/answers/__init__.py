"""The texts and pages of the commands that answer more than a graph; one a command."""

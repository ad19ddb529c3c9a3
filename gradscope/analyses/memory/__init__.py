"""What a graph keeps alive for backward, read without running a hook of the program."""

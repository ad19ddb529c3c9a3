"""What the drawings of a graph share: what is shown, in which order, with which words and sizes."""

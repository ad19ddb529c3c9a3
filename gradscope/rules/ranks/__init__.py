"""What differs between the ranks of one job."""

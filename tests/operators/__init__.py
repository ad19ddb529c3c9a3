"""Every operator of torch's own operator database, through every command."""

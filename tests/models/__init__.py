"""A hundred small models, of torch and of packages made for it, through six commands."""

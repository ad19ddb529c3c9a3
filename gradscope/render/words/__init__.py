"""How text, numbers, places and tables are written, the same in every format and answer."""

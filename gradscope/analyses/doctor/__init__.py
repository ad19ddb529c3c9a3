"""What a doctor looks at besides the graph: the calls of the program, its leaves, its optimizers.

Each module keeps one sort of observation while the program runs, in bounded memory, and turns it
into plain data when a report is made.  ``examiner`` puts them together around a run.
"""

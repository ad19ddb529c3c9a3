"""The study behind ``gradscope depends``: which indices of one tensor depend on which of another.

Gradients that are not zero at one index only are sent from the one tensor to the other, in step as
the pieces of :mod:`gradscope.analyses.split`; their norm at each index where they arrive is told.
"""

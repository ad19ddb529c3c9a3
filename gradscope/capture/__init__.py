"""Left of the Report: everything that touches live torch objects.

    session ─► watch ─► recorder          run a program, see its calls
       └────► assemble ─► walk, flow, names, source, summary ─► Report
       └────► seed                        --root and --gradient, text to tensors

Nothing outside this package imports torch; nothing in it knows how a report is drawn.
"""

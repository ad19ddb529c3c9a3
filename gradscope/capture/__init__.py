"""Left of the Report: everything that touches live torch objects.

    session ─► watcher ─► recorder          run a program, see its calls
                  │          └─► places, spans, modules, events, remembered, freed: its memory
                  ├────► roots, seed, literal        --root and --gradient, text to tensors
    look ─────────┴────► probe ─► walk, flow, meter, summary     one pass over one graph
                           ├────► assemble ─► names, source      in the user's words ─► Report
                           ├────► blame ─► saved                 why backward failed
                           └────► study ─► explaining            what was asked beyond gradients

``quiet`` holds what keeps a look from being noticed.  Nothing outside this package imports torch;
nothing in it knows how a report is drawn.
"""

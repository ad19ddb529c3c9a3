"""What a training loop does with parameters and gradients, between two backward calls.

For the doctor, which tells it of calls, modules and backward calls; it knows nothing of graphs.

    tracked_parameters ─► optimizers ─► loop_order   backward, clip, step, zero: in which order?
           │                  │    ├──► wasted       which calls are zeroed before a step?
           │                  │    └──► loop_calls   who calls them: wrappers, hooks of torch
           │                  ├───────► rates, schedules              how large are the steps?
           │                  ├───────► idle_optimizers, lost_settings          who never steps?
           │                  ├───────► step_effect, spoiling_steps   what came of it?
           │                  └───────► accumulating                  what adds up before?
           ├──► remade, copies          made anew in each forward, or a deep copy: which one learns?
           ├──► left_behind             which optimizer steps what such a copy has replaced?
           ├──► renewed, restored, hand_drops    what is made anew, put back, dropped?
           ├──► dropped_results         which edit of a gradient or a parameter changes nothing?
           ├──► made_parameters         which Parameters does the program make itself?
           └──► aliases, stores, statistics            what is kept from step to step, and by whom

Everything is kept by the ids of parameters and the numbers of places, in bounded memory. Parameters
are read only where a finding needs it: all together, with one wait a device.
"""

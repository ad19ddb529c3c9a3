"""What a training loop does with parameters and gradients, between two backward calls.

For the doctor, which tells it of calls, modules and backward calls; it knows nothing of graphs.

    tracked_parameters ─► optimizers ─► loop_order   backward, clip, step, zero: in which order?
           │                  │    ├──► wasted       which calls are zeroed before a step?
           │                  │    ├──► idle_optimizers                   who never steps?
           │                  │    └──► loop_calls   who calls them: wrappers, hooks of torch
           │                  ├───────► schedules                         who makes and calls one?
           │                  ├───────► step_effect, spoiling_steps       what came of it?
           │                  └───────► accumulating                      what adds up before?
           ├──► remade, copies          made anew in each forward, or a deep copy: which one learns?
           ├──► left_behind             which optimizer steps what such a copy has replaced?
           ├──► hand_drops              which gradients does the program drop itself?
           ├──► dropped_results         which edit of a gradient or a parameter changes nothing?
           ├──► made_parameters         which Parameters does the program make itself?
           └──► stores, eval_modes      what is kept from step to step, and by whom; in which mode

Everything is kept by the ids of parameters and the numbers of places, in bounded memory. Parameters
are read only where a finding needs it: all together, with one wait a device.
"""

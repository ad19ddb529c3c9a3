"""The study behind ``gradscope explain``: derivatives of single nodes, paths, and weights.

study ─► pull              call one node, or send a gradient through all, without the engine
  ├────► asked             which leaves or node the reader means
  ├────► rules ─► formulas torch's own derivative formulas
  ├────► locals, listing   what one node does
  └────► paths, weights    what arrives along which way, and for which element of the root
"""

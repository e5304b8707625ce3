"""What x86-64 instructions are and do, by way of iced-x86.

Read ``decoding`` first: the canonical form of an instruction, for everything in Python.
``block_categories`` sorts blocks for tables and reports, ``instruction_categories`` instructions
for models. The rest describes instructions to the native decoder: ``templates`` puts a description
together from ``operands`` and ``effects``, in the record of ``template_layout``.
"""

"""What the code that users have costs.

``inputs`` reads hexadecimal, assembly and object files; ``functions`` sums the cycles of a
function's blocks.
"""

"""The state of registers and memory that a block is measured in.

The measuring harness sets it (``native/throughput``), the simulated core emulates addresses from it
(``native/cost/Codes.h``, checked when the library is loaded), and llvm-exegesis is started with it.
"""

from typing import Final

FIRST_REGISTER: Final = 0x12345600
REGISTER_STEP: Final = 0x1010140
"""General register i begins with ``FIRST_REGISTER + i * REGISTER_STEP``, but for rsp."""
STACK_POINTER: Final = 0x22345800
PAGE_FILLING: Final = 0x41234500
"""Every eight bytes of a page that the block touches: a pointer to another such page."""

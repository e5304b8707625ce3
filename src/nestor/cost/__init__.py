"""Cost models of basic blocks: from machine code to cycles."""

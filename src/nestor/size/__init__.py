"""IR2Native: the size of a function's machine code, predicted from its IR."""

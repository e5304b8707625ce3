"""How a whole program is built, and what of it is whose."""

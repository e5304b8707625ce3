"""What a compiler says of its failure; imports nothing, since compiles wait for this module."""


def error_of(text: str) -> str:
    """Return the first line of ``text`` that is an error, without one the first; "" if empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors or lines or [""])[0]

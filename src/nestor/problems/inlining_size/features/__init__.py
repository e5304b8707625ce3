"""Features of call sites: what policies read (``sets``), and what the plugin adds (``site``)."""

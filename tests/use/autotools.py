"""What autotools need to build a library and a program that uses it, as several tests do."""

from typing import Final

AUTOTOOLS: Final = {
    "configure.ac": """
AC_INIT([p], [1])
AM_INIT_AUTOMAKE([foreign])
AM_PROG_AR
LT_INIT
AC_PROG_CC
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
""",
    "Makefile.am": """
lib_LTLIBRARIES = libboth.la
libboth_la_SOURCES = lib.c
bin_PROGRAMS = app
app_SOURCES = app.c
app_LDADD = libboth.la
""",
}
"""Texts by the name of the file."""

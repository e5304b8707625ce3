"""The fresh tier: projects to look at once, when everything else is settled.

Nobody has looked at them while recipes of learning were made or settings chosen; they share
neither code nor authors with any other tier. All are held out: a policy is evaluated on them once,
at the end, to see whether what the bench tier promises is true. Whoever tunes anything after
looking at a result on this tier has spent it, and needs other projects.
"""

from nestor.corpus.recipe import TONE, Recipe, cmake, configure, ninja, recipe, run

_AUTOCONF = ("./configure", "--disable-shared", "--disable-nls", "--disable-dependency-tracking")

# What groff's makefile would generate, for all of its programs, before it compiles anything.
_HEADERS = (
    "defs.h",
    *(f"lib/{name}.h" for name in (
        "math", "stdio", "string", "sys/types", "unitypes", "uniwidth", "wchar", "wctype")),
)  # fmt: skip

_SEQUENCES = r"""
my ($seed, @bases) = (7, split //, "ACDEFGHIKLMNPQRSTVWY");
sub draw { $seed = ($seed * 1103515245 + 12345) % 2147483648; return int($seed / 65536) % $_[0] }
my @parent = map { $bases[draw(20)] } 1 .. 120;
open my $f, ">", "family.fasta" or die;
for my $name (1 .. 8) {
  print $f ">s$name\n", (map { draw(5) ? $_ : $bases[draw(20)] } @parent), "\n";
}
close $f or die;
"""

_DOCUMENT = r"""
my @items = map { qq({"n": $_, "s": "a\\u00e9\\n", "x": [1.5e3, true, null]}) } 1 .. 999;
open my $f, ">", "file.json" or die;
print $f "[", join(",", @items), "]";
close $f or die;
"""

CXX: tuple[Recipe, ...] = (
    recipe(
        "capnproto", "0.9.2-2",
        ("capnproto_0.9.2.orig.tar.gz",
         "4031e9c9158fce1979baf3c5234315c1be74b273c0be9f6c4aaf4d0dfda52542"),
        "MIT", "test", "modern: schema compiler, own standard library, owning pointers",
        (cmake("-DBUILD_TESTING=OFF", "-DWITH_OPENSSL=OFF"), ninja("capnp_tool")),
        {"build/src/capnp/capnp": ("compile", "--no-standard-import", "-o-", "annotations.capnp")},
        inputs={"annotations.capnp": "src/capnp/c++.capnp"},
    ),
    recipe(
        "groff", "1.22.4-10",
        ("groff_1.22.4.orig.tar.gz",
         "e78e7b4cb7dec310849004fa88847c44701e8d133b5d4c13057d876c1bad0293"),
        "GPL-3.0-or-later", "test", "old: typesetter, own strings and dictionaries, yacc",
        (configure(*_AUTOCONF, "--without-x", "--with-doc=no", "CXXFLAGS=-O0 -std=gnu++98"),
         configure("make", *_HEADERS),
         run("make", "-j@JOBS@", "troff", "pic", "eqn", "tbl")),
        {"pic": ("--version",), "eqn": ("--version",), "tbl": ("groff.1",), "troff": ("-v",)},
        inputs={"groff.1": "src/roff/groff/groff.1.man"},
    ),
    recipe(
        "mecab", "0.996-14",
        ("mecab_0.996.orig.tar.gz",
         "e073325783135b72e666145c781bb48fada583d5224fb2490fb6c1403ba69c59"),
        "GPL-2.0-only OR LGPL-2.1-only OR BSD-3-Clause", "test",
        "class-heavy: text analysis, tries, a learner",
        (configure(*_AUTOCONF, "--enable-utf8-only"),
         run("make", "-C", "src", "-j@JOBS@", "CXXFLAGS=-O0 -std=gnu++98")),
        {"src/mecab": ("-v",), "src/mecab-dict-index": ("-v",), "src/mecab-cost-train": ("-v",)},
    ),
    recipe(
        "clustalw", "2.1+lgpl-7",
        ("clustalw_2.1+lgpl.orig.tar.gz",
         "e052059b87abfd8c9e695c280bfba86a65899138c82abccd5b00478a80f49486"),
        "LGPL-3.0-or-later", "test", "class-heavy: sequence alignment, vectors of vectors",
        (configure(*_AUTOCONF, "CXXFLAGS=-O0 -std=gnu++98"), run("make", "-C", "src", "-j@JOBS@"),
         configure("perl", "-e", _SEQUENCES)),
        {"src/clustalw2": ("-INFILE=family.fasta", "-OUTFILE=out.aln")},
        inputs={"family.fasta": "family.fasta"},
    ),
    recipe(
        "nlohmann-json", "3.11.2-2",
        ("nlohmann-json3_3.11.2.orig.tar.gz",
         "d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273"),
        "MIT", "test", "modern: header-only, variants and exceptions, heavy templates",
        (run("@CXX@", "-Iinclude", "-c", "tests/src/fuzzer-driver_afl.cpp", "-o", "driver.o"),
         *(step for name in ("json", "bjdata") for step in (
             run("@CXX@", "-Iinclude", "-c", f"tests/src/fuzzer-parse_{name}.cpp",
                 "-o", f"parse_{name}.o"),
             run("@CXX@", f"parse_{name}.o", "driver.o", "-o", f"parse_{name}"))),
         configure("perl", "-e", _DOCUMENT)),
        {"parse_json": ("<file.json",), "parse_bjdata": ()},
        package="nlohmann-json3",
        inputs={"file.json": "file.json"},
    ),
)  # fmt: skip

C: tuple[Recipe, ...] = (
    recipe(
        "mawk", "1.3.4.20200120-3.1",
        ("mawk_1.3.4.20200120.orig.tar.gz",
         "7fd4cd1e1fae9290fe089171181bbc6291dfd9bca939ca804f0ddb851c8b8237"),
        "GPL-2.0-only", "test", "C: interpreter, own regular expressions",
        (configure("./configure", "CFLAGS=-O0"), run("make", "-j@JOBS@", "mawk")),
        {"mawk": ("{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) k += n[w]; print k }",
                  "parse.y")},
        inputs={"parse.y": "parse.y"},
    ),
    recipe(
        "tcc", "0.9.27+git20200814.62c30a4a-1",
        ("tcc_0.9.27+git20200814.62c30a4a.orig.tar.bz2",
         "d63c113bcdd657f51c8ee197a0b0a24203603313e19a52b5f678d40ab7f5df35"),
        "LGPL-2.1-or-later", "test", "C: compiler in one pass, globals",
        (configure("./configure", "--cc=@CC@", "--extra-cflags=-O0"),
         run("make", "-j@JOBS@", "tcc")),
        {"tcc": ("-nostdinc", "-c", "-o", "out.o", "in.c")},
        inputs={"in.c": "tests/tests2/03_struct.c"},
    ),
    recipe(
        "exuberant-ctags", "1:5.9~svn20110310-18",
        ("exuberant-ctags_5.9~svn20110310.orig.tar.gz",
         "7348e21502454a1331c58d5eec5c18a546395acd5628599a7a55dc77b48ffd2f"),
        "GPL-2.0-or-later", "test", "C: hand-written parsers of many languages",
        # Its own name for an attribute is one of the C library's today.
        (configure("sh", "-c", "sed -i s/__unused__/not_used/g *.c *.h"),
         configure("./configure", "CFLAGS=-O0 -fcommon"), run("make", "-j@JOBS@", "ctags")),
        {"ctags": ("-f", "-", "c.c")},
        inputs={"c.c": "c.c"},
    ),
    recipe(
        "opus", "1.3.1-3",
        ("opus_1.3.1.orig.tar.gz",
         "65b58e1e25b2a114157014736a3d9dfeaad8d41be1c8179866f144a2fb44ff9d"),
        "BSD-3-Clause", "test", "C: codec, signal processing, macros of fixed-point arithmetic",
        (configure(*_AUTOCONF, "--disable-doc", "--disable-rtcd", "--disable-intrinsics",
                   "CFLAGS=-O0"),
         run("make", "-j@JOBS@", "opus_demo"), TONE),
        {"opus_demo": ("audio", "48000", "1", "32000", "tone.wav", "out.raw")},
        inputs={"tone.wav": "tone.wav"},
    ),
)  # fmt: skip

FRESH: tuple[Recipe, ...] = (*CXX, *C)

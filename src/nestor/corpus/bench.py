"""The bench tier: projects of many styles, with whole styles held out.

What is held out for tests was chosen to be unlike the rest: older, class-heavy C++ (hunspell,
taglib, gperf), small-stack C++ (lzip), an interpreter and a cryptographic library in C.
"""

from collections.abc import Mapping

from nestor.corpus.model import Split
from nestor.corpus.recipe import Recipe, Step, cmake, configure, ninja, run


def _recipe(
    project: str,
    version: str,
    tarball: tuple[str, str],
    licence: str,
    split: Split,
    steps: tuple[Step, ...],
    programs: Mapping[str, tuple[str, ...]],
    package: str = "",
) -> Recipe:
    return Recipe(
        project, package or project, version, dict([tarball]), licence, steps, programs, split
    )


_AUTOCONF = ("./configure", "--disable-shared", "--disable-nls", "--disable-dependency-tracking")

_RE2_TABLES = """
cat > re2/unicode_groups.cc <<'END'
#include "re2/unicode_groups.h"
namespace re2 {
static const URange16 none[] = {{0, 0}};
const UGroup unicode_groups[] = {{"Any", +1, none, 1, 0, 0}};
const int num_unicode_groups = 0;
}
END
cat > re2/unicode_casefold.cc <<'END'
#include "re2/unicode_casefold.h"
namespace re2 {
const CaseFold unicode_casefold[] = {{65, 90, 32}, {97, 122, -32}};
const int num_unicode_casefold = 2;
const CaseFold unicode_tolower[] = {{65, 90, 32}};
const int num_unicode_tolower = 1;
}
END
"""

BENCH: tuple[Recipe, ...] = (
    # C++
    _recipe(
        "leveldb", "1.23-4",
        ("leveldb_1.23.orig.tar.gz",
         "9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76"),
        "BSD-3-Clause", "train",
        (cmake("-DLEVELDB_BUILD_TESTS=OFF", "-DLEVELDB_BUILD_BENCHMARKS=OFF"),
         ninja("leveldbutil")),
        {"build/leveldbutil": ()},
    ),
    _recipe(
        "ninja", "1.11.1-2~deb12u1",
        ("ninja-build_1.11.1.orig.tar.gz",
         "31747ae633213f1eda3842686f83c2aa1412e0f5691d1c14dbbcc67fe7400cea"),
        "Apache-2.0", "train",
        (cmake("-DBUILD_TESTING=OFF"), ninja("ninja")),
        {"build/ninja": ("--version",)},
        package="ninja-build",
    ),
    _recipe(
        "re2", "20220601+dfsg-1",
        ("re2_20220601+dfsg.orig.tar.xz",
         "3bc61251da3b0b97be40a8a127818c517c62516e4eda11fc901d29496663df54"),
        "BSD-3-Clause", "train",
        # Debian's tarball lacks the generated Unicode tables; empty ones change data, not code.
        (configure("sh", "-c", "perl re2/make_perl_groups.pl > re2/perl_groups.cc"),
         configure("sh", "-c", _RE2_TABLES),
         cmake("-DRE2_BUILD_TESTING=OFF"), ninja("re2"),
         run("@CXX@", "-O2", "-I.", "testinstall.cc", "build/libre2.a", "-pthread",
             "-o", "testinstall")),
        {"testinstall": ()},
    ),
    _recipe(
        "yaml-cpp", "0.7.0+dfsg-8",
        ("yaml-cpp_0.7.0+dfsg.orig.tar.xz",
         "dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312"),
        "MIT", "validation",
        (cmake("-DYAML_CPP_BUILD_TESTS=OFF", "-DYAML_CPP_BUILD_TOOLS=ON"), ninja("parse")),
        {"build/util/parse": ()},
    ),
    _recipe(
        "box2d", "2.4.1-3",
        ("box2d_2.4.1.orig.tar.gz",
         "d6b4650ff897ee1ead27cf77a5933ea197cbeef6705638dd181adc2e816b23c2"),
        "MIT", "train",
        (cmake("-DBOX2D_BUILD_TESTBED=OFF",
               "-DCMAKE_CXX_FLAGS=-DDOCTEST_CONFIG_NO_POSIX_SIGNALS"), ninja("unit_test")),
        {"build/bin/unit_test": ()},
    ),
    _recipe(
        "hunspell", "1.7.1-1",
        ("hunspell_1.7.1.orig.tar.gz",
         "b2d9c5369c2cc7f321cb5983fda2dbf007dce3d9e17519746840a6f0c4bf7444"),
        "MPL-1.1 OR LGPL-2.1-or-later", "test",
        (configure(*_AUTOCONF), run("make", "-j@JOBS@")),
        {"src/tools/hunspell": ("--version",), "src/tools/analyze": ()},
    ),
    _recipe(
        "taglib", "1.13-2+deb12u1",
        ("taglib_1.13.orig.tar.gz",
         "58f08b4db3dc31ed152c04896ee9172d22052bc7ef12888028c01d8b1d60ade0"),
        "LGPL-2.1-only OR MPL-1.1", "test",
        (cmake("-DBUILD_EXAMPLES=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON"),
         ninja("tagreader", "tagwriter")),
        {"build/examples/tagreader": (), "build/examples/tagwriter": ()},
    ),
    _recipe(
        "gperf", "3.1-1",
        ("gperf_3.1.orig.tar.gz",
         "1f88819b78187350e7e6ca24b5e15cbf4083659773508d3f018b9b525e9d1cb8"),
        "GPL-3.0-or-later", "test",
        (configure("./configure", "CXXFLAGS=-O0 -std=gnu++14"), run("make", "-C", "lib"),
         run("make", "-C", "src")),
        {"src/gperf": ("--version",)},
    ),
    _recipe(
        "lzip", "1.23-5",
        ("lzip_1.23.orig.tar.xz",
         "d269d8e204579cb7047d6187bce741acb484a27e24cf24f20cf017c48574147c"),
        "GPL-2.0-or-later", "test",
        (configure("./configure", "CXX=@CXX@"), run("make", "-j@JOBS@")),
        {"lzip": ("--version",)},
    ),
    _recipe(
        "log4cplus", "2.0.8-1",
        ("log4cplus_2.0.8.orig.tar.xz",
         "f5949e713cf8635fc554384ab99b04716e3430f28eed6dd7d71ad03d959b91a0"),
        "Apache-2.0 AND BSD-2-Clause", "train",
        (cmake("-DLOG4CPLUS_BUILD_TESTING=ON", "-DWITH_UNIT_TESTS=OFF",
               "-DLOG4CPLUS_BUILD_LOGGINGSERVER=OFF"), ninja("appender_test")),
        {"build/bin/appender_test": ()},
    ),
    # C
    _recipe(
        "lua", "5.4.4-3+deb12u1",
        ("lua5.4_5.4.4.orig.tar.gz",
         "164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61"),
        "MIT", "test",
        (run("make", "-C", "src", "-j@JOBS@", "CC=@CC@ -std=gnu99", "posix"),),
        {"src/lua": ("-v",), "src/luac": ("-v",)},
        package="lua5.4",
    ),
    _recipe(
        "mujs", "1.3.2-1",
        ("mujs_1.3.2.orig.tar.xz",
         "4886593fc688b0cdccd31e5ecbe5afe7ad1bee23aa69e667b871afd5dfc640c3"),
        "ISC", "train",
        # The Makefile compiles one file that includes all others; the parts are what we want.
        (run("sh", "-c", "for f in js*.c regexp.c utf.c; do @CC@ -O2 -c $f || exit; done"),
         run("@CC@", "-O2", "-c", "main.c"),
         run("sh", "-c", "@CC@ main.o js*.o regexp.o utf.o -lm -o mujs")),
        {"mujs": ()},
    ),
    _recipe(
        "sed", "4.9-1+deb12u1",
        ("sed_4.9.orig.tar.xz",
         "6e226b732e1cd739464ad6862bd1a1aba42d7982922da7a53519631d24975181"),
        "GPL-3.0-or-later", "train",
        (configure(*_AUTOCONF), run("make", "-j@JOBS@", "sed/sed")),
        {"sed/sed": ("--version",)},
    ),
    _recipe(
        "zstd", "1.5.4+dfsg2-5",
        ("libzstd_1.5.4+dfsg2.orig.tar.xz",
         "8cf4bbb65e77ec348d052c8d6230eba66d435bddf64c8b5be2fcb16880c19953"),
        "BSD-3-Clause OR GPL-2.0-only", "train",
        (run("make", "-C", "programs", "-j@JOBS@", "obj/it/zstd", "BUILD_DIR=obj/it",
             "HAVE_ZLIB=0", "HAVE_LZMA=0", "HAVE_LZ4=0"),),
        {"programs/obj/it/zstd": ("--version",)},
        package="libzstd",
    ),
    _recipe(
        "libxml2", "2.9.14+dfsg-1.3~deb12u6",
        ("libxml2_2.9.14+dfsg.orig.tar.xz",
         "4fe913dec8b1ab89d13b489b419a8203176ea39e931eaa0d25b17eafb9c279e9"),
        "MIT", "train",
        (cmake("-DLIBXML2_WITH_PYTHON=OFF", "-DLIBXML2_WITH_LZMA=OFF", "-DLIBXML2_WITH_ZLIB=OFF",
               "-DLIBXML2_WITH_TESTS=OFF", "-DLIBXML2_WITH_ICU=OFF"), ninja("xmllint")),
        {"build/xmllint": ("--version",)},
    ),
    _recipe(
        "libjpeg-turbo", "1:2.1.5-2",
        ("libjpeg-turbo_2.1.5.orig.tar.gz",
         "254f3642b04e309fee775123133c6464181addc150499561020312ec61c1bf7c"),
        "IJG AND BSD-3-Clause AND Zlib", "train",
        (cmake("-DWITH_SIMD=OFF", "-DENABLE_SHARED=OFF"),
         ninja("cjpeg-static", "djpeg-static", "jpegtran-static")),
        {"build/cjpeg-static": ("-version",), "build/djpeg-static": ("-version",),
         "build/jpegtran-static": ("-version",)},
    ),
    _recipe(
        "mbedtls", "2.28.3-1",
        ("mbedtls_2.28.3.orig.tar.gz",
         "3b4953aa55a681e084d31892d9904cc5328d6b4958ea57b90ae4b4f94ae69a8d"),
        "Apache-2.0 OR GPL-2.0-or-later", "test",
        (cmake("-DENABLE_TESTING=OFF", "-DMBEDTLS_FATAL_WARNINGS=OFF"),
         ninja("selftest", "ssl_client1", "benchmark")),
        {"build/programs/test/selftest": (), "build/programs/ssl/ssl_client1": (),
         "build/programs/test/benchmark": ()},
    ),
    _recipe(
        "xz", "5.4.1-1+deb12u2",
        ("xz-utils_5.4.1.orig.tar.xz",
         "5d9827aa1875b21c288f78864bb26d2650b436ea8d2cad364e4921eb6266a5a5"),
        "LicenseRef-xz-public-domain AND LGPL-2.1-or-later AND GPL-2.0-or-later", "train",
        (configure(*_AUTOCONF, "--disable-doc", "--disable-scripts"), run("make", "-j@JOBS@")),
        {"src/xz/xz": ("--version",), "src/xzdec/xzdec": ("--version",)},
        package="xz-utils",
    ),
    _recipe(
        "flac", "1.4.2+ds-2",
        ("flac_1.4.2+ds.orig.tar.xz",
         "47274ac8fcb1f0e6caa91d29f943925d7a40c0a3f6357c3275773bdb1ee46638"),
        "BSD-3-Clause AND GPL-2.0-or-later", "train",
        (cmake("-DWITH_OGG=OFF", "-DBUILD_CXXLIBS=OFF", "-DBUILD_TESTING=OFF",
               "-DBUILD_EXAMPLES=OFF", "-DINSTALL_MANPAGES=OFF", "-DBUILD_DOCS=OFF"),
         ninja("flacapp", "metaflac")),
        {"build/src/flac/flac": ("--version",), "build/src/metaflac/metaflac": ("--version",)},
    ),
    _recipe(
        "expat", "2.5.0-1+deb12u5",
        ("expat_2.5.0.orig.tar.gz",
         "ab00ee05c7067fd10a35c5d2a4922ebba746ddd50ff83b79c828da17bbdf1757"),
        "MIT", "test",
        (cmake("-DEXPAT_BUILD_TESTS=OFF", "-DEXPAT_BUILD_EXAMPLES=ON", "-DEXPAT_BUILD_DOCS=OFF",
               "-DEXPAT_SHARED_LIBS=OFF", source="expat"), ninja("xmlwf", "elements")),
        {"build/xmlwf/xmlwf": ("-v",), "build/examples/elements": ()},
    ),
    _recipe(
        "jansson", "2.14-2",
        ("jansson_2.14.orig.tar.gz",
         "c739578bf6b764aa0752db9a2fdadcfe921c78f1228c7ec0bb47fa804c55d17b"),
        "MIT", "validation",
        (cmake("-DJANSSON_BUILD_DOCS=OFF"), ninja("json_process", "test_array")),
        {"build/bin/json_process": (), "build/bin/test_array": ()},
    ),
    _recipe(
        "lzo", "2.10-2",
        ("lzo2_2.10.orig.tar.gz",
         "c0f892943208266f9b6543b3ae308fab6284c5c90e627931446fb49b4221a072"),
        "GPL-2.0-or-later", "train",
        (cmake("-DENABLE_STATIC=ON", "-DENABLE_SHARED=OFF"), ninja("lzotest")),
        {"build/lzotest": ()},
        package="lzo2",
    ),
    _recipe(
        "tidy", "2:5.6.0-11",
        ("tidy-html5_5.6.0.orig.tar.gz",
         "08a63bba3d9e7618d1570b4ecd6a7daa83c8e18a41c82455b6308bc11fe34958"),
        "LicenseRef-W3C-tidy", "train",
        (cmake("-DBUILD_SHARED_LIB=OFF"), ninja("tidy")),
        {"build/tidy": ("-version",)},
        package="tidy-html5",
    ),
)  # fmt: skip

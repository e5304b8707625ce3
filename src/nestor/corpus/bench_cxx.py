"""The projects of the bench tier whose programs are in C++."""

from nestor.corpus.recipe import TONE, Recipe, cmake, configure, example, ninja, recipe, run

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

_BUILD = r"""
open my $f, ">", "build.ninja" or die;
print $f "rule cc\n  command = cc -c \$in -o \$out\n";
print $f "build o$_: cc i$_ | h${\($_ % 97)}\n" for 1 .. 5000;
close $f or die;
"""

_EIGEN = (
    "TutorialLinAlgSVDSolve", "TutorialLinAlgSelfAdjointEigenSolver",
    "TutorialLinAlgExComputeSolveError", "TutorialInplaceLU", "Tutorial_PartialLU_solve",
    "matrixfree_cg",
)  # fmt: skip
_BLITZ = (
    "examples/convolve", "examples/stencil2", "testsuite/stencil-et", "testsuite/where",
    "testsuite/multicomponent",
)  # fmt: skip

CXX: tuple[Recipe, ...] = (
    recipe(
        "leveldb", "1.23-4",
        ("leveldb_1.23.orig.tar.gz",
         "9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76"),
        "BSD-3-Clause", "train", "modern: storage engine, virtual interfaces, no exceptions",
        (cmake("-DLEVELDB_BUILD_TESTS=OFF", "-DLEVELDB_BUILD_BENCHMARKS=OFF"),
         ninja("leveldbutil")),
        {"build/leveldbutil": ()},
    ),
    recipe(
        "ninja", "1.11.1-2~deb12u1",
        ("ninja-build_1.11.1.orig.tar.gz",
         "31747ae633213f1eda3842686f83c2aa1412e0f5691d1c14dbbcc67fe7400cea"),
        "Apache-2.0", "test", "modern: build tool, STL, generated lexer",
        (cmake("-DBUILD_TESTING=OFF"), ninja("ninja"),
         configure("perl", "-e", _BUILD)),
        {"build/ninja": ("-t", "targets", "all")},
        inputs={"build.ninja": "build.ninja"},
        package="ninja-build",
    ),
    recipe(
        "re2", "20220601+dfsg-1",
        ("re2_20220601+dfsg.orig.tar.xz",
         "3bc61251da3b0b97be40a8a127818c517c62516e4eda11fc901d29496663df54"),
        "BSD-3-Clause", "train", "modern: automata, hand-made containers, no exceptions",
        # Debian's tarball lacks the generated Unicode tables; empty ones change data, not code.
        (configure("sh", "-c", "perl re2/make_perl_groups.pl > re2/perl_groups.cc"),
         configure("sh", "-c", _RE2_TABLES),
         cmake("-DRE2_BUILD_TESTING=OFF"), ninja("re2"),
         run("@CXX@", "-O2", "-I.", "testinstall.cc", "build/libre2.a", "-pthread",
             "-o", "testinstall")),
        {"testinstall": ("-",)},
    ),
    recipe(
        "yaml-cpp", "0.7.0+dfsg-8",
        ("yaml-cpp_0.7.0+dfsg.orig.tar.xz",
         "dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312"),
        "MIT", "test", "modern: parser, shared pointers, exceptions",
        (cmake("-DYAML_CPP_BUILD_TESTS=OFF", "-DYAML_CPP_BUILD_TOOLS=ON"), ninja("parse")),
        {"build/util/parse": ("style.yml",)},
        inputs={"style.yml": ".clang-format"},
    ),
    recipe(
        "box2d", "2.4.1-3",
        ("box2d_2.4.1.orig.tar.gz",
         "d6b4650ff897ee1ead27cf77a5933ea197cbeef6705638dd181adc2e816b23c2"),
        "MIT", "train", "physics: plain structures, pools; test macros",
        (cmake("-DBOX2D_BUILD_TESTBED=OFF",
               "-DCMAKE_CXX_FLAGS=-DDOCTEST_CONFIG_NO_POSIX_SIGNALS"), ninja("unit_test")),
        {"build/bin/unit_test": ("-m",)},
    ),
    recipe(
        "hunspell", "1.7.1-1",
        ("hunspell_1.7.1.orig.tar.gz",
         "b2d9c5369c2cc7f321cb5983fda2dbf007dce3d9e17519746840a6f0c4bf7444"),
        "MPL-1.1 OR LGPL-2.1-or-later", "test", "old: dictionaries, strings and hash chains",
        (configure(*_AUTOCONF), run("make", "-j@JOBS@")),
        {"src/tools/hunspell": ("-d", "german", "-a", "words"),
         "src/tools/analyze": ("german.aff", "german.dic", "words")},
        inputs={"german.aff": "tests/germancompounding.aff",
                "german.dic": "tests/germancompounding.dic",
                "words": "tests/germancompounding.wrong"},
    ),
    recipe(
        "taglib", "1.13-2+deb12u1",
        ("taglib_1.13.orig.tar.gz",
         "58f08b4db3dc31ed152c04896ee9172d22052bc7ef12888028c01d8b1d60ade0"),
        "LGPL-2.1-only OR MPL-1.1", "test", "class-heavy: metadata, implicitly shared data",
        (cmake("-DBUILD_EXAMPLES=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON"),
         ninja("tagreader", "tagwriter")),
        {"build/examples/tagreader": ("xing.mp3", "test.ogg", "click.mpc", "test.xm"),
         "build/examples/tagwriter": ("-a", "nobody", "-t", "nothing", "xing.mp3")},
        inputs={name: f"tests/data/{name}"
                for name in ("xing.mp3", "test.ogg", "click.mpc", "test.xm")},
    ),
    recipe(
        "gperf", "3.1-1",
        ("gperf_3.1.orig.tar.gz",
         "1f88819b78187350e7e6ca24b5e15cbf4083659773508d3f018b9b525e9d1cb8"),
        "GPL-3.0-or-later", "test", "old: small class hierarchy, own containers",
        (configure("./configure", "CXXFLAGS=-O0 -std=gnu++14"), run("make", "-C", "lib"),
         run("make", "-C", "src")),
        {"src/gperf": ("-D", "languages.gperf")},
        inputs={"languages.gperf": "tests/languages.gperf"},
    ),
    recipe(
        "lzip", "1.23-5",
        ("lzip_1.23.orig.tar.xz",
         "d269d8e204579cb7047d6187bce741acb484a27e24cf24f20cf017c48574147c"),
        "GPL-2.0-or-later", "test", "compressor: small classes, inline bit coding",
        (configure("./configure", "CXX=@CXX@"), run("make", "-j@JOBS@")),
        {"lzip": ("-c", "encoder.cc")},
        inputs={"encoder.cc": "encoder.cc"},
    ),
    recipe(
        "log4cplus", "2.0.8-1",
        ("log4cplus_2.0.8.orig.tar.xz",
         "f5949e713cf8635fc554384ab99b04716e3430f28eed6dd7d71ad03d959b91a0"),
        "Apache-2.0 AND BSD-2-Clause", "train", "class-heavy: logging, threads, exceptions",
        (cmake("-DLOG4CPLUS_BUILD_TESTING=ON", "-DWITH_UNIT_TESTS=OFF",
               "-DLOG4CPLUS_BUILD_LOGGINGSERVER=OFF"), ninja("appender_test")),
        {"build/bin/appender_test": ("-",)},
    ),
    recipe(
        "flatbuffers", "2.0.8+dfsg1-2",
        ("flatbuffers_2.0.8+dfsg1.orig.tar.xz",
         "424b8c76568e718a1a05c3fbc6b2070c83b5e55d9b48568fa4f744e9bcd1163a"),
        "Apache-2.0", "train", "modern: schema compiler, code generators",
        (cmake("-DFLATBUFFERS_BUILD_TESTS=OFF"), ninja("flatc")),
        {"build/flatc": ("--cpp", "--python", "--rust", "--java", "monster.fbs")},
        inputs={"monster.fbs": "samples/monster.fbs"},
    ),
    recipe(
        "soundtouch", "2.3.2+ds1-1",
        ("soundtouch_2.3.2+ds1.orig.tar.xz",
         "9f07b1583d798c3b1caa4a45941468992441688ce5c9164bed7121f12d3032a5"),
        "LGPL-2.1-or-later", "train", "class-heavy: audio, floating-point loops",
        (cmake(), ninja("soundstretch"), TONE),
        {"build/soundstretch": ("tone.wav", "out.wav", "-tempo=+20", "-pitch=-3")},
        inputs={"tone.wav": "tone.wav"},
    ),
    recipe(
        "voro++", "0.5+revert-to-0.4.6+dfsg1-1",
        ("voro++_0.5+revert-to-0.4.6+dfsg1.orig.tar.gz",
         "71bee30fac48599c08429dbf741297987118a6bf3cceabb4ed614cc3192345fc"),
        "BSD-3-Clause-LBNL", "validation", "numeric: geometry, templates over containers",
        (run("make", "-C", "src", "CXX=@CXX@", "voro++"),),
        {"src/voro++": ("-3", "3", "-3", "3", "0", "6", "cube")},
        inputs={"cube": "examples/interface/pack_six_cube"},
    ),
    recipe(
        "tetgen", "1.5.0-5",
        ("tetgen_1.5.0.orig.tar.gz",
         "4d114861d5ef2063afd06ef38885ec46822e90e7b4ea38c864f76493451f9cf3"),
        "AGPL-3.0-or-later", "train", "numeric: one large class, meshes",
        (run("make", "CXX=@CXX@", "CXXFLAGS=-O0", "tetgen"),),
        {"tetgen": ("-pq", "example.poly")},
        inputs={"example.poly": "example.poly"},
    ),
    recipe(
        "geographiclib", "2.1.2-1",
        ("geographiclib_2.1.2.orig.tar.gz",
         "b062b472dae3d371b3005f4ea2fc59af687b8ea76eb23df732ec11c500fba959"),
        "MIT", "train", "numeric: geodesy, small value classes, exceptions",
        (cmake(), ninja("GeodSolve", "GeoConvert", "RhumbSolve")),
        {"build/tools/GeodSolve": ("-i", "--input-string", "40.6 -73.8 51.6 -0.5"),
         "build/tools/GeoConvert": ("--input-string", "33.3 44.4"),
         "build/tools/RhumbSolve": ("-i", "--input-string", "40.6 -73.8 51.6 -0.5")},
    ),
    recipe(
        "ragel", "6.10-4",
        ("ragel_6.10.orig.tar.gz",
         "5f156edb65d20b856d638dd9ee2dfb43285914d9aa2b6ec779dac0270cd56c3f"),
        "GPL-2.0-or-later", "train", "old: state machines, own template containers",
        (configure(*_AUTOCONF, "CXXFLAGS=-O0 -std=gnu++98"), run("make", "-C", "aapl"),
         run("make", "-C", "ragel", "-j@JOBS@")),
        {"ragel/ragel": ("-C", "-G2", "-o", "out.c", "clang.rl")},
        inputs={"clang.rl": "examples/clang.rl"},
    ),
    recipe(
        "angelscript", "2.35.1+ds-3",
        ("angelscript_2.35.1+ds.orig.tar.xz",
         "74a966d50c3342f204b4311f3c040d6255cc5753d19716f285a19ee693ceeb91"),
        "Zlib", "train", "class-heavy: compiler and interpreter, own containers",
        (run("sh", "-c", "for f in angelscript/source/*.cpp; do "
             "@CXX@ -c $f -o ${f%.cpp}.o || exit; done"),
         run("sh", "-c", "for f in $(ls add_on/*/*.cpp | grep -E "
             "'/(script(array|helper|stdstring|stdstring_utils|dictionary|file|filesystem|builder)"
             "|debugger|contextmgr|datetime).cpp'); do "
             "@CXX@ -Iangelscript/include -c $f -o ${f%.cpp}.o || exit; done"),
         run("sh", "-c", "@CXX@ -Iangelscript/include -c samples/asrun/source/main.cpp -o asrun.o"
             " && ar rcs libangelscript.a angelscript/source/*.o"
             " && @CXX@ asrun.o add_on/*/*.o libangelscript.a -lpthread -o asrun")),
        {"asrun": ("script.as",)},
        inputs={"script.as": "samples/asrun/bin/script.as"},
    ),
    recipe(
        "muparser", "2.3.3-0.1",
        ("muparser_2.3.3.orig.tar.gz",
         "91d26d8274ae9cd9c776ee58250aeddc6b574f369eafd03b25045b858a2b8177"),
        "BSD-2-Clause", "validation", "class-heavy: expression parser, exceptions",
        (cmake("-DENABLE_OPENMP=OFF"), ninja("t_ParserTest", "example1")),
        {"build/t_ParserTest": ("-",), "build/example1": ()},
    ),
    recipe(
        "cadical", "1.5.3-2",
        ("cadical_1.5.3.orig.tar.gz",
         "0ff521ed36d57478a8dbc610e0d27536c9d3a2154d859152f33f8733a6dca31e"),
        "MIT", "test", "solver: satisfiability, packed clauses, one class in many files",
        (configure("./configure"),
         run("make", "-C", "build", "-j@JOBS@", "CXXFLAGS=-O0 -DNDEBUG", "cadical")),
        {"build/cadical": ("-q", "-c", "2000", "factor.cnf")},
        inputs={"factor.cnf": "test/cnf/prime4294967297.cnf"},
    ),
    recipe(
        "clasp", "3.3.5-4.2",
        ("clasp_3.3.5.orig.tar.gz",
         "c0204b85ea3453af9372d8c7ffcb11306d5279b68c4d4af056f3fad65fe50724"),
        "MIT", "test", "solver: answer sets, strategies and policies, templates",
        (cmake("-DCLASP_BUILD_WITH_THREADS=OFF"), ninja("clasp")),
        {"build/bin/clasp": ("--version",)},
    ),
    recipe(
        "zpaq", "7.15+repack-1",
        ("zpaq_7.15+repack.orig.tar.xz",
         "3f0460527fc32b629b135408eaf19850e86af98318dd0bb3cc54bf24dadcc03b"),
        "LicenseRef-zpaq-public-domain AND MIT", "test", "compressor: context mixing, interpreter",
        (run("make", "CXX=@CXX@", "CXXFLAGS=-O0", "CPPFLAGS=-Dunix -DNOJIT", "zpaq"),),
        {"zpaq": ("add", "x.zpaq", "readme.txt", "-m3")},
        inputs={"readme.txt": "readme.txt"},
    ),
    recipe(
        "libde265", "1.0.11-1+deb12u2",
        ("libde265_1.0.11.orig.tar.gz",
         "2f8f12cabbdb15e53532b7c1eb964d4e15d444db1be802505e6ac97a25035bab"),
        "LGPL-3.0-or-later", "train", "codec: video, templates over pixel types, threads",
        (cmake("-DENABLE_SDL=OFF", "-DDISABLE_SSE=ON"), ninja("dec265")),
        {"build/dec265/dec265": ()},
    ),
    recipe(
        "rapidjson", "1.1.0+dfsg2-7.1",
        ("rapidjson_1.1.0+dfsg2.orig.tar.gz",
         "92aa6402743012e5f2c3db17def1ff5273df4f3ca7a8f8ed9f1041d392c14ce7"),
        "MIT", "validation", "modern: header-only, templates over allocators and encodings",
        # An assignment that cannot compile, and that no compiler looked at before clang 19.
        (configure("sed", "-i", "/GenericStringRef& operator=(const GenericStringRef& rhs)/d",
                   "include/rapidjson/document.h"),
         *example("example/schemavalidator/schemavalidator.cpp", "-Iinclude"),
         *example("example/prettyauto/prettyauto.cpp", "-Iinclude"),
         *example("example/filterkeydom/filterkeydom.cpp", "-Iinclude"),
         *example("example/jsonx/jsonx.cpp", "-Iinclude")),
        {"schemavalidator": ("sample.json", "<sample.json"), "prettyauto": ("<sample.json",),
         "filterkeydom": ("name", "<sample.json"), "jsonx": ("<sample.json",)},
        inputs={"sample.json": "bin/data/sample.json"},
    ),
    recipe(
        "eigen3", "3.4.0-4",
        ("eigen3_3.4.0.orig.tar.bz2",
         "b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626"),
        "MPL-2.0", "test", "expression templates: linear algebra",
        tuple(
            step
            for name in _EIGEN
            for step in example(f"doc/examples/{name}.cpp", "-DNDEBUG", "-I.")
        ),
        dict.fromkeys(_EIGEN, ("-",)),
    ),
    recipe(
        "blitz++", "1:1.0.2+ds-4",
        ("blitz++_1.0.2+ds.orig.tar.xz",
         "44db64d9561e3b10b75bf14d75bd92ac0461c170941ef50f9b32ac0238b50f5d"),
        "LGPL-3.0-or-later OR BSD-3-Clause OR Artistic-2.0", "test",
        "expression templates: arrays and stencils",
        # The library is one file, but many headers are generated.
        (cmake("-DBUILD_TESTING=OFF", "-DBUILD_DOC=OFF"),
         configure("ninja", "-C", "build", "blitz", "blitz/array/stencil-classes.cc"),
         configure("install", "-D", "build/blitz/bzconfig.h", "build/blitz/llvm/bzconfig.h"),
         run("@CXX@", "-I.", "-Ibuild", "-c", "src/globals.cpp"),
         *(step for name in _BLITZ
           for step in example(f"{name}.cpp", "-I.", "-Ibuild", libraries=("globals.o",)))),
        {name.rpartition("/")[2]: ("-",) for name in _BLITZ},
    ),
    recipe(
        "simdjson", "3.0.1-1",
        ("simdjson_3.0.1.orig.tar.gz",
         "156b1bc5eb0561b2bd166b46d191fd3d95a3e709cc63761477d3b7aec2b6e9ed"),
        "Apache-2.0", "test", "modern: intrinsics, kernels chosen at run time",
        example("singleheader/amalgamate_demo.cpp", "-std=c++17"),
        {"amalgamate_demo": ("twitter.json",)},
        inputs={"twitter.json": "jsonexamples/twitter.json"},
    ),
    recipe(
        "wabt", "1.0.32-1",
        ("wabt_1.0.32.orig.tar.xz",
         "2e9fbcbe0ef64042f9691d995116954bc84823fe747a593d80a873566a18cba8"),
        "Apache-2.0", "test", "modern: visitors, owning pointers, no exceptions",
        (cmake("-DBUILD_TESTS=OFF", "-DBUILD_LIBWASM=OFF"),
         ninja("wat2wasm", "wast2json", "wasm-interp")),
        {"build/wat2wasm": ("--enable-all", "all-features.wat"),
         "build/wast2json": ("--version",), "build/wasm-interp": ("--version",)},
        inputs={"all-features.wat": "test/parse/all-features.txt"},
    ),
    recipe(
        "gnuchess", "6.2.7-1+deb12u1",
        ("gnuchess_6.2.7.orig.tar.gz",
         "e536675a61abe82e61b919f6b786755441d9fcd4c21e1c82fb9e5340dd229846"),
        "GPL-3.0-or-later", "train", "like C: game engine, search over bit boards",
        (configure(*_AUTOCONF, "--without-readline", "CXXFLAGS=-O0 -std=gnu++14"),
         run("make", "-j@JOBS@")),
        {"src/gnuchess": ("--version",)},
    ),
)  # fmt: skip

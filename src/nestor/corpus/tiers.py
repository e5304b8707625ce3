"""The tiers: which projects a corpus is made of."""

from collections.abc import Mapping
from typing import Literal

from nestor.corpus.bench import BENCH
from nestor.corpus.fresh import FRESH
from nestor.corpus.recipe import Recipe, cmake, configure, ninja, run

Tier = Literal["tiny", "demo", "bench", "fresh"]

TINY: tuple[Recipe, ...] = (
    Recipe(
        project="bzip2",
        package="bzip2",
        version="1.0.8-5",
        sources={
            "bzip2_1.0.8.orig.tar.gz":
                "ab5a03176ee106d3f0fa90e381da478ddae405918153cca248e682cd0c4a2269",
        },
        licence="bzip2-1.0.6",
        style="C: compressor, macros",
        steps=(run("make", "-j@JOBS@", "CC=@CC@", "libbz2.a", "bzip2", "bzip2recover"),),
        programs={"bzip2": ("-c", "bzlib.c"), "bzip2recover": ()},
        inputs={"bzlib.c": "bzlib.c"},
    ),
    Recipe(
        project="zlib",
        package="zlib",
        version="1:1.2.13.dfsg-1",
        sources={
            "zlib_1.2.13.dfsg.orig.tar.bz2":
                "71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1",
        },
        licence="Zlib",
        style="C: compressor, old style",
        steps=(
            configure("./configure", "--static"),
            run("make", "-j@JOBS@", "libz.a", "example", "minigzip"),
        ),
        programs={"minigzip": ("deflate.c",), "example": ("out.gz",)},
        inputs={"deflate.c": "deflate.c"},
    ),
    Recipe(
        project="pugixml",
        package="pugixml",
        version="1.13-0.2",
        sources={
            "pugixml_1.13.orig.tar.gz":
                "5c5ad5d7caeb791420408042a7d88c2c6180781bf218feca259fd9d840a888e1",
        },
        licence="MIT",
        style="modern: document tree, custom allocation, templates of strings",
        split="test",
        steps=(
            run("@CXX@", "-c", "-Isrc", "src/pugixml.cpp", "-o", "pugixml.o"),
            run(
                "@CXX@", "-Isrc", "docs/samples/xpath_query.cpp", "pugixml.o", "-o", "xpath_query",
            ),
            run(
                "@CXX@", "-Isrc", "docs/samples/custom_memory_management.cpp", "pugixml.o",
                "-o", "custom_memory_management",
            ),
        ),
        programs={"xpath_query": ("-",), "custom_memory_management": ("-",)},
        inputs={"xgconsole.xml": "docs/samples/xgconsole.xml"},
    ),
    Recipe(
        project="tinyxml2",
        package="tinyxml2",
        version="9.0.0+dfsg-3.1",
        sources={
            "tinyxml2_9.0.0+dfsg.orig.tar.xz":
                "96510f47a5db537f70dff3e83dd71fd2180cbba4aa76c589a549467e7f34bc9b",
        },
        licence="Zlib",
        style="document tree, own memory pools, no exceptions",
        steps=(cmake("-DBUILD_TESTING=ON", "-Dtinyxml2_BUILD_TESTING=ON"), ninja("xmltest")),
        programs={"build/xmltest": ()},
    ),
    Recipe(
        project="lz4",
        package="lz4",
        version="1.9.4-1",
        sources={
            "lz4_1.9.4.orig.tar.gz":
                "0b0e3aa07c8c063ddf40b082bdf7e37a1562bda40a0ff5272957f3e987e0e54b",
        },
        licence="BSD-2-Clause AND GPL-2.0-or-later",
        style="C: compressor, forced inlining",
        steps=(run("make", "-j@JOBS@", "-C", "programs", "lz4"),),
        programs={"programs/lz4": ("-q", "-9", "lz4.c", "out.lz4")},
        inputs={"lz4.c": "lib/lz4.c"},
        split="test",
    ),
    Recipe(
        project="jsoncpp",
        package="libjsoncpp",
        version="1.9.5-4",
        sources={
            "libjsoncpp_1.9.5.orig.tar.gz":
                "f409856e5920c18d0c2fb85276e24ee607d2a09b5e7d5f0a371368903c275da2",
        },
        licence="MIT",
        style="document tree, STL, exceptions",
        steps=(
            cmake(
                "-DJSONCPP_WITH_POST_BUILD_UNITTEST=OFF", "-DBUILD_OBJECT_LIBS=OFF",
                "-DJSONCPP_WITH_EXAMPLE=OFF",
            ),
            ninja("jsontestrunner_exe"),
        ),
        programs={"build/bin/jsontestrunner_exe": ("legacy_test_large_01.json",)},
        inputs={"legacy_test_large_01.json": "test/data/legacy_test_large_01.json"},
    ),
)  # fmt: skip

DEMO = (*TINY, *(recipe for recipe in BENCH if recipe.project == "ninja"))
"""The tiny tier, and a held-out C++ program of some size."""

TIERS: Mapping[Tier, tuple[Recipe, ...]] = {
    "tiny": TINY,
    "demo": DEMO,
    "bench": (*TINY, *BENCH),
    "fresh": FRESH,
}

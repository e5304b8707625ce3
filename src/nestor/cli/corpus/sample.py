"""``nestor corpus sample``: draw source packages at random."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nestor.cli.console import print_json, stdout
from nestor.cli.remarks import remark
from nestor.corpus.fetch.debian import Archive
from nestor.corpus.packages.index import Index, copy_lists, has_lists, read_index
from nestor.corpus.packages.sample import SampleSettings, draw, packages_seen_in_training
from nestor.files import refuse_folder
from nestor.temporary import temporary_folder


@dataclass(frozen=True)
class Sample:
    """Draw source packages at random from the archive's index, one name a line.

    The same seed and the same index give the same packages, and a larger --count begins with the
    smaller one, so a draw can grow. Packages of the tiers' projects for training and validation are
    left out. A package is C++ if one of its binary packages depends on libstdc++6, else C if one
    depends on libc6 and none of its build dependencies is the compiler of another language.

    Examples:
        nestor corpus sample --seed 1 --count 20 --language c++
        nestor corpus sample --seed 1 --count 20 --language c --most-kb 500 --json
        nestor corpus sample --seed 1 --index lists        keeps the lists for the next draw
        nestor corpus fetch --package $(nestor corpus sample --seed 1) corpus/sample
    """

    seed: int = SampleSettings.seed
    """The seed of the draw."""
    count: int = SampleSettings.count
    """How many packages."""
    language: Literal["c++", "c", "both"] = "both"
    """The language of the packages."""
    half: Literal["development", "final", "both"] = "both"
    """Print one half of what was drawn: one to develop with, the other for one look at the end."""
    least_kb: int = SampleSettings.least_kb
    """The smallest source package, in kB of its compressed files."""
    most_kb: int = SampleSettings.most_kb
    """The largest source package, in kB of its compressed files."""
    index: Path | None = None
    """A folder with the archive's lists of sources and binary packages. They are downloaded into
    it if it has none; without it, they are downloaded for this draw."""
    json: bool = False
    """Print the draw, with the digest of the index, as JSON."""

    def run(self) -> int:
        """Draw and print; 1 if the archive has no such package."""
        settings = SampleSettings(self.seed, self.count, self.language, self.least_kb, self.most_kb)
        sample = draw(_index(self.index), settings, packages_seen_in_training())
        chosen = [one for one in sample.drawn if self.half in ("both", one.half)]
        if self.json:
            names = {one.package.name for one in chosen}
            content = sample.to_json()
            content["packages"] = [p for p in content["packages"] if p["name"] in names]
            print_json(content)
        else:
            for one in chosen:
                stdout.print(one.package.name, soft_wrap=True, highlight=False)
            remark(
                f"{len(sample.drawn)} of {sample.candidates} packages, index {sample.index[:12]}."
            )
        return 0 if chosen else 1


def _index(folder: Path | None) -> Index:
    if folder is not None and has_lists(folder):
        return read_index(folder)
    if folder is not None:
        refuse_folder(folder)
    with temporary_folder("index") as name:
        archive = Archive(Path(name), binaries=True)
        if folder is not None:
            copy_lists(archive.lists, folder)
        return read_index(archive.lists)

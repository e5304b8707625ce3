"""Vocabularies for embeddings of functions, trained as IR2Vec trains them.

``benchmarks.embeddings`` compares such embeddings with the features of distillation.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nestor.compiler.toolchain import find
from nestor.corpus.model import Corpus
from nestor.problems.inlining_size.features import vocabulary
from nestor.problems.inlining_size.size.examples import drawn

F64 = npt.NDArray[np.float64]

DIMENSION, PUBLISHED = 12, 75
"""Of the embeddings that are compared, and of those that IR2Vec trains."""


def trained(corpus: Corpus, folder: Path, seed: int) -> tuple[tuple[str, ...], F64]:
    """Return the entities and their vectors ``[entities, PUBLISHED]``, weights multiplied in."""
    import torch

    toolchain = find()
    names_ = vocabulary.entities(toolchain, folder)
    counts: Counter[tuple[int, int, int]] = Counter()
    for module in drawn(corpus, ("train",), 2, seed):
        counts.update(vocabulary.triplets(toolchain, corpus.bitcode(module), folder))
    facts = torch.tensor(sorted(counts))
    often = torch.tensor([counts[key] ** 0.75 for key in sorted(counts)])
    generator = torch.Generator().manual_seed(seed)
    bound = 6 / PUBLISHED**0.5
    tables = [
        (torch.rand((size, PUBLISHED), generator=generator) * 2 - 1) * bound
        for size in (len(names_), int(facts[:, 2].max()) + 1)
    ]
    entity, relation = (torch.nn.Parameter(table) for table in tables)
    optimiser = torch.optim.Adam([entity, relation], lr=0.01)
    for _ in range(4000):  # TransE (Bordes et al., NIPS 2013): head + relation is the tail
        with torch.no_grad():
            entity.div_(entity.norm(dim=1, keepdim=True).clamp(min=1))
        true = facts[torch.multinomial(often, 512, replacement=True, generator=generator)]
        false = true.clone()
        side = torch.randint(0, 2, (512,), generator=generator)
        other = torch.randint(0, len(names_), (512,), generator=generator)
        false[torch.arange(512), side] = other
        off = [
            (entity[f[:, 0]] + relation[f[:, 2]] - entity[f[:, 1]]).norm(dim=1)
            for f in (true, false)
        ]
        loss = torch.relu(1 + off[0] - off[1]).mean()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    first, last = names_.index("FloatTy"), names_.index("Function")
    place = np.arange(len(names_))
    weight = np.where(place < first, 1.0, np.where(place < last, 0.5, 0.2))
    return names_, entity.detach().numpy().astype(np.float64) * weight[:, None]


def largest_directions(counts: F64, vectors: F64, instructions: int) -> F64:
    """Return ``vectors`` in the ``DIMENSION`` directions in which functions differ most.

    :param counts: of entities in functions, of which the first ``instructions`` are opcodes.
    """
    like = counts @ vectors / np.maximum(1, counts[:, :instructions].sum(axis=1))[:, None]
    _, _, directions = np.linalg.svd(like - like.mean(axis=0), full_matrices=False)
    return np.asarray(np.rint(1000 * vectors @ directions[:DIMENSION].T), dtype=np.float64)

"""What a result was made from, by digest, so that it can be made again."""

from nestor.policy.names import NamedPolicy
from nestor.problem.problem import Pool


def digests(pool: Pool, policy: NamedPolicy) -> dict[str, str]:
    """Return the digests of the corpus, the compiler, the plugin and the policy."""
    return {
        "corpus": pool.corpus.digest,
        "compiler": pool.plugin.toolchain.build_id,
        "plugin": pool.plugin.digest,
        "policy": policy.digest,
    }

"""The cluster shape of a launch: who says it, what is allowed, and the order in which CTAs of clusters run.

Source: PTX ISA 'Cluster Dimension Directives' (.reqnctapercluster, .explicitcluster, .maxclusterrank), 'Cluster of
Cooperative Thread Arrays'; CUDA C++ Programming Guide, 'Thread Block Clusters': up to 8 CTAs on every device that has
clusters, 16 where the launch allows a size that is not portable, as Triton's launcher does.

A kernel says its shape by a directive, or a launch by `cluster=`; when both do they must agree. A launch without either
has clusters of one CTA that are not explicit.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ptx.errors import InvalidInput

PORTABLE, MOST = 8, 16
FIRST_ARCH = 90
"""The first architecture with clusters."""

Dim3 = tuple[int, int, int]
Rows = np.ndarray[Any, np.dtype[np.int64]]


def cluster_shape(name: str, directives: Mapping[str, tuple[int, ...]], asked: Dim3 | None) -> Dim3 | None:
    """CTAs of a cluster along x, y, z as kernel `name` or its launch says; None if neither does."""
    required = directives.get(".reqnctapercluster")
    said: Dim3 | None = None
    if required:
        x, y, z = (*required, 1, 1)[:3]
        said = x, y, z
    if said is not None and asked is not None and said != asked:
        raise InvalidInput(
            f"cluster {asked}: '{name}' was compiled with .reqnctapercluster {', '.join(map(str, said))}",
            help="leave cluster out, or compile the kernel for that shape",
        )
    shape = said or asked
    if shape is None and ".explicitcluster" in directives:
        raise InvalidInput(f"'{name}' was compiled with .explicitcluster", help="say the shape with cluster=(x, y, z)")
    return shape


def check_cluster(
    name: str, directives: Mapping[str, tuple[int, ...]], shape: Dim3, grid: Dim3, device: str, arch: int
) -> None:
    """Raises InvalidInput for a cluster shape that a device does not launch for this grid."""
    size = prod(shape)
    if any(n < 1 for n in shape):
        raise InvalidInput(f"cluster {shape} of '{name}': every dimension must be at least 1")
    if arch < FIRST_ARCH and size > 1:
        raise InvalidInput(f"cluster {shape} of '{name}': {device} has no clusters", help="use sm_90 or later")
    if size > PORTABLE and size != MOST:
        raise InvalidInput(
            f"cluster {shape} of '{name}' has {size} CTAs",
            help=f"a cluster has up to {PORTABLE} CTAs, or {MOST}, the size that is not portable",
        )
    most = directives.get(".maxclusterrank")
    if most and size > most[0]:
        raise InvalidInput(f"cluster {shape} of '{name}', which was compiled with .maxclusterrank {most[0]}")
    if any(n % c for n, c in zip(grid, shape, strict=True)):
        raise InvalidInput(
            f"grid {grid} of '{name}' is not a whole number of clusters {shape}",
            help="every dimension of the grid must be a multiple of the cluster's (Triton multiplies x by num_ctas)",
        )


def in_clusters(ctas: Rows, shape: Dim3) -> Rows:
    """CTAs to run, those of a cluster together and by rank; clusters in the order of their first CTAs (for a whole
    grid: x fastest). Raises InvalidInput for a part of a cluster."""
    size = prod(shape)
    if size == 1:
        return ctas
    across = np.array(shape, np.int64)
    inside = ctas % across
    rank = inside[:, 0] + shape[0] * (inside[:, 1] + shape[1] * inside[:, 2])
    clusters, first, number = np.unique(ctas // across, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(clusters), np.int64)
    place[np.argsort(first, kind="stable")] = np.arange(len(clusters))
    key = place[number.reshape(-1)] * size + rank
    order = np.argsort(key, kind="stable")
    if not np.array_equal(key[order], np.arange(len(clusters) * size)):
        raise InvalidInput(
            f"ctas has a part of a cluster, or a CTA twice: clusters are {shape}",
            help="CTAs of a cluster run together: name all of them, each once",
        )
    return np.ascontiguousarray(ctas[order])

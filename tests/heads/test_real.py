"""Real graphs and real attention patterns, not only random matrices; and the long one."""

import resource

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array

import thereexists.heads as heads

GRAPHS = {
    "karate club": nx.karate_club_graph,
    "davis southern women": nx.davis_southern_women_graph,
    "florentine families": nx.florentine_families_graph,
    "les miserables": nx.les_miserables_graph,
}


def attention_of(graph):
    """Row-stochastic target of a graph: its weights, plus a self-loop so that no row is empty."""
    return csr_array(nx.to_scipy_sparse_array(graph, weight="weight", dtype=float)) + eye_array(len(graph))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_real_graph_is_attended_to(name, dense_errors):
    A = attention_of(GRAPHS[name]())
    head = heads.fit(A, eps1=1e-3, eps2=1e-2)
    leakage, ratio = dense_errors(head.X, head.W_Q, head.W_K, head.target)
    assert head.verdict.holds
    assert leakage < 1e-3
    assert ratio <= 1e-2
    assert head.hidden_size < 2 * head.target.length  # better than no compression at all
    weights = head.module()(head.X).numpy()
    wanted = A.toarray() / A.toarray().sum(1, keepdims=True)
    assert np.abs(weights - wanted).max() <= 1e-2 + head.target.length * 1e-3


def test_a_graph_without_self_loops_and_an_isolated_node_is_refused_with_the_remedy():
    graph = nx.florentine_families_graph()
    graph.add_node("Pucci")
    from thereexists.core.errors import InvalidInput

    with pytest.raises(InvalidInput, match="self-loop"):
        heads.fit(csr_array(nx.to_scipy_sparse_array(graph, dtype=float)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("half", [1, 2])
def test_a_sliding_window_takes_the_order_that_the_dtype_carries(half):
    """Side by side the window needs h+1 blocks, but crowded zeros cost precision; spread apart 2h+1 blocks do."""
    n = 256
    gap = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    head = heads.fit(csr_array((gap <= half).astype(float)), eps1=1e-3, eps2=1e-2)
    assert head.verdict.holds
    assert head.hidden_size <= 4 * (2 * half + 1)


@pytest.mark.slow
def test_65536_tokens_are_fitted_and_verified_in_two_minutes_and_four_gigabytes():
    head = heads.fit(heads.random_matrix(65536, 4, 2.0, 0), eps1=1e-3, eps2=1e-2)
    assert head.verdict.holds
    assert head.verification.rows == 65536
    assert head.hidden_size <= 1024
    assert head.seconds < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 4e6

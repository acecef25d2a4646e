"""Merging of components: the nearest single term, and the pair that costs least."""

from __future__ import annotations

import numpy as np
import pytest

from smartcpd._methods.merging import NearestTerm, Terms, merged
from smartcpd._problem.problem import Problem


def whole(factors):
    letters = "ijklm"[: len(factors)]
    return np.einsum(",".join(f"{m}r" for m in letters) + "->" + letters, *factors)


def nearest_by_search(T, rng):
    """The squared distance of the nearest rank-one tensor: power steps from many starts."""
    best = 0.0
    for _ in range(8):
        x = [rng.standard_normal(size) for size in T.shape]
        for _ in range(30):
            for mode in range(T.ndim):
                y = T
                for other in reversed([k for k in range(T.ndim) if k != mode]):
                    y = np.tensordot(y, x[other], (other, 0))
                size = np.linalg.norm(y)
                x[mode] = y / size
        best = max(best, size)
    return np.sum(T**2) - best**2


@pytest.mark.parametrize("order", [2, 3, 4])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("apart", [0.1, 0.5, 2.0])
def test_the_cost_of_a_merge_is_the_distance_to_the_nearest_single_term(order, signed, apart):
    rng = np.random.default_rng([order, signed, int(10 * apart)])
    draw = rng.standard_normal if signed else rng.random
    first = [draw(5) for _ in range(order)]
    second = [a + apart * draw(5) for a in first]
    factors = [np.stack(pair, axis=1) for pair in zip(first, second, strict=True)]
    T = whole(factors)
    terms = Terms([A.copy() for A in factors])
    cost = terms.costs[0, 1]
    terms.merge_cheapest()
    assert np.sum((T - whole(terms.factors())) ** 2) == pytest.approx(cost, abs=1e-9 * np.sum(T**2))
    assert cost <= nearest_by_search(T, rng) + 2e-3 * np.sum(T**2)


def test_terms_that_point_the_other_way_are_turned():
    rng = np.random.default_rng(0)
    a = [rng.standard_normal(4) for _ in range(3)]
    turned = [-a[0], -a[1], a[2]]
    terms = Terms([np.stack(pair, axis=1) for pair in zip(a, turned, strict=True)])
    assert terms.costs[0, 1] == pytest.approx(0.0, abs=1e-9)
    terms.merge_cheapest()
    np.testing.assert_allclose(whole(terms.factors()), 2 * whole([c[:, None] for c in a]))


def test_costs_after_a_merge_are_those_of_a_new_beginning():
    rng = np.random.default_rng(1)
    terms = Terms([rng.random((6, 7)) for _ in range(3)])
    for _ in range(4):
        terms.merge_cheapest()
        anew = Terms(terms.factors())
        np.testing.assert_allclose(terms.costs, anew.costs, atol=1e-9)


def test_a_split_component_is_merged_before_a_weak_one_is_lost():
    """The halves of a strong component differ a little in every mode; a weak one is alone."""
    rng = np.random.default_rng(2)
    strong, weak = rng.random((3, 30)), np.where(rng.random((3, 30)) < 0.1, 1.0, 0.0)
    halves = [strong * (1 + 0.6 * rng.standard_normal(strong.shape)).clip(0.1) for _ in range(2)]
    others = [rng.random((3, 30)) ** 8 for _ in range(3)]
    columns = [*halves, *others, 0.8 * weak]
    A = np.concatenate([np.stack([c[mode] for c in columns], axis=1) for mode in range(3)])
    problem = Problem.build(rng.poisson(1.0, (30, 30, 30)), 5, loss="poisson")
    found = merged(A, problem)
    last = [part[:, -1] / np.linalg.norm(part[:, -1]) for part in np.split(found, 3)]
    assert np.prod([u @ w / np.linalg.norm(w) for u, w in zip(last, weak, strict=True)]) > 0.99


def test_no_term_is_as_near_as_two_that_are_far_apart():
    near = NearestTerm.to_sums(np.array([2.0]), np.array([1.0]), np.zeros((3, 1)))
    assert near.size == pytest.approx(2.0)
    assert near.error == pytest.approx(1.0)

"""Constraints: contracts for every one of them, then each against an independent reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import isotonic_regression, minimize, nnls

from smartcpd import constraints, mirrors
from smartcpd.constraints import Constraint
from smartcpd.errors import InvalidParameterError

QUADRATIC = mirrors.get("quadratic")
VARIANTS = [
    "box(-0.5, 0.5)",
    "l1-ball(2, nonnegative=True)",
    "l2-ball(0.5, nonnegative=True)",
    "monotone(decreasing=True)",
    "monotone(nonnegative=True)",
    "smoothness(3, nonnegative=True)",
    "sparsity(0.3, nonnegative=True)",
    "unimodal(nonnegative=True)",
]
MAPS = ["quadratic", "entropy", "burg", "power(1.5)", "power(3)", "power(-1)"]
CASES = [(name, "quadratic") for name in constraints.names() + VARIANTS]
CASES += [("simplex", mirror) for mirror in MAPS[1:]]
every_case = pytest.mark.parametrize(("name", "mirror"), CASES)
either_sign = pytest.mark.parametrize("nonnegative", [False, True])

MEMBERSHIP = {
    "nonnegative": lambda c, A: A >= 0,
    "box": lambda c, A: (c.lo <= A) & (c.hi >= A),
    "simplex": lambda c, A: (A >= 0) & np.isclose(A.sum(axis=0), 1, rtol=0, atol=1e-12),
    "l1-ball": lambda c, A: np.abs(A).sum(axis=0) <= c.radius * (1 + 1e-12),
    "l2-ball": lambda c, A: np.linalg.norm(A, axis=0) <= c.radius * (1 + 1e-12),
    "monotone": lambda c, A: np.diff(A, axis=0) * (-1 if c.decreasing else 1) >= 0,
    "unimodal": lambda c, A: one_peak(A),
}
GAMMAS = st.floats(-6, 6).map(lambda power: 10.0**power)
many = settings(max_examples=25, deadline=None, derandomize=True)


def one_peak(A):
    directions = np.sign(np.diff(A, axis=0)).T
    return [(np.diff(d[d != 0]) <= 0).all() for d in directions]


def is_penalty(name):
    return type(constraints.get(name)).penalty is not Constraint.penalty


def point(mirror, shape=(7, 3), seed=0):
    """A point to project and its weights."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(scale=1.5, size=shape)
    return Z if mirror.signed else np.abs(Z), 10 ** rng.uniform(-1, 1, shape)


def objective(c, mirror, A, Z, Gamma):
    return float(np.sum(Gamma * mirror.bregman(A, Z))) + c.penalty(A)


def project32(c, mirror, Z, Gamma):
    Z, Gamma = Z.astype(np.float32), Gamma.astype(np.float32)
    if c.in_dual:
        p = tuple(map(np.float32, mirror.params))
        mirror.to_dual_block("float32")(Z.reshape(-1), p, Z.reshape(-1))
    c.project_block("float32")(
        Z,
        Gamma,
        mirror.to_dual_block("float32"),
        mirror.to_primal_block("float32"),
        tuple(map(np.float32, mirror.params)),
        tuple(map(np.float32, c.params(mirror))),
    )
    return Z


def columns(largest=10.0, smallest=None):
    """(column, weights), the weights over twelve orders of magnitude."""
    entries = st.floats(-largest if smallest is None else smallest, largest)
    return st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            arrays(float, (n, 1), elements=entries), arrays(float, (n, 1), elements=GAMMAS)
        )
    )


@every_case
@pytest.mark.parametrize("shape", [(7, 3), (1, 3), (7, 1), (1, 1)])
def test_result_is_in_the_set(name, mirror, shape):
    c, phi = constraints.get(name), mirrors.get(mirror)
    A = c.apply(*point(phi, shape), phi)
    assert np.isfinite(A).all()
    assert c.signed or (A >= 0).all()
    assert np.all(MEMBERSHIP.get(c.name, lambda c, A: True)(c, A))


@pytest.mark.parametrize(("name", "mirror"), [case for case in CASES if not is_penalty(case[0])])
def test_projecting_on_a_set_twice_changes_nothing(name, mirror):
    c, phi = constraints.get(name), mirrors.get(mirror)
    Z, Gamma = point(phi)
    A = c.apply(Z, Gamma, phi)
    np.testing.assert_allclose(c.apply(A, Gamma, phi), A, rtol=1e-9, atol=1e-12)


@every_case
def test_no_other_point_of_the_set_is_better(name, mirror):
    c, phi = constraints.get(name), mirrors.get(mirror)
    Z, Gamma = point(phi)
    A = c.apply(Z, Gamma, phi)
    best = objective(c, phi, A, Z, Gamma)
    rng = np.random.default_rng(1)
    for trial in range(200):
        noise = rng.normal(size=Z.shape) * 10.0 ** -(trial % 4)
        B = c.apply(A + noise if phi.signed else A * np.exp(noise), None, phi)
        assert objective(c, phi, B, Z, Gamma) >= best - 1e-9


@every_case
def test_single_precision_agrees_with_double(name, mirror):
    c, phi = constraints.get(name), mirrors.get(mirror)
    Z, Gamma = point(phi, (40, 4))
    expected = c.apply(Z, Gamma, phi)
    np.testing.assert_allclose(project32(c, phi, Z, Gamma), expected, rtol=1e-3, atol=2e-5)


@every_case
def test_apply_leaves_its_input_alone(name, mirror):
    c, phi = constraints.get(name), mirrors.get(mirror)
    Z, Gamma = point(phi)
    before = Z.copy(), Gamma.copy()
    c.apply(Z, Gamma, phi)
    np.testing.assert_array_equal(Z, before[0])
    np.testing.assert_array_equal(Gamma, before[1])


@every_case
def test_what_is_not_coupled_can_be_projected_apart(name, mirror):
    c, phi = constraints.get(name), mirrors.get(mirror)
    Z, Gamma = point(phi)
    axis = 1 if c.columnwise else 0
    apart = [np.split(X, Z.shape[axis], axis) for X in (Z, Gamma)]
    parts = [c.apply(z, gamma, phi) for z, gamma in zip(*apart, strict=True)]
    np.testing.assert_allclose(np.concatenate(parts, axis), c.apply(Z, Gamma, phi), rtol=1e-12)


@pytest.mark.parametrize("name", [n for n, _ in CASES if n != "box"])
def test_a_constraint_is_read_back_from_what_it_prints(name):
    c = constraints.get(name)
    assert constraints.get(str(c)) == c


@pytest.mark.parametrize("name", [n for n in constraints.names() if n not in ("free", "box")])
def test_the_loss_decides_the_sign_unless_the_user_has(name):
    c = constraints.get(name)
    assert not c.within(nonnegative=True).signed
    if not c.signed:
        return
    assert c.within(nonnegative=False).signed
    assert constraints.get(f"{name}(nonnegative=False)").within(nonnegative=True).signed
    assert not constraints.get(f"{name}(nonnegative=True)").within(nonnegative=False).signed


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("l1-ball(0)", "radius=0"),
        ("l2-ball(-1)", "radius=-1"),
        ("sparsity(-0.1)", "weight=-0.1"),
        ("smoothness(-2)", "weight=-2"),
        ("monotone(3)", "3"),
        ("unimodal(nonnegative=2)", "2"),
    ],
)
def test_senseless_parameters_are_named(name, culprit):
    with pytest.raises(InvalidParameterError, match=culprit):
        constraints.get(name)


def test_penalties_have_their_values():
    A = np.array([[1.0, -2.0], [3.0, 0.0], [3.0, 1.0]])
    assert constraints.get("sparsity(0.5)").penalty(A) == pytest.approx(5.0)
    assert constraints.get("smoothness(3)").penalty(A) == pytest.approx(1.5 * (4 + 0 + 4 + 1))
    assert constraints.get("simplex").penalty(A) == 0


def sorted_simplex_projection(z):
    """Held, Wolfe and Crowder's algorithm."""
    u = np.sort(z)[::-1]
    excess = (np.cumsum(u) - 1) / np.arange(1, z.size + 1)
    return np.maximum(z - excess[u > excess][-1], 0)


@many
@given(arrays(float, st.integers(1, 30), elements=st.floats(-10, 10)))
def test_quadratic_simplex_is_the_projection_by_sorting(z):
    A = constraints.get("simplex").apply(z[:, None])
    np.testing.assert_allclose(A[:, 0], sorted_simplex_projection(z), atol=1e-12)


@pytest.mark.parametrize("length", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("mirror", MAPS)
def test_a_step_on_the_simplex_is_exact_however_far_it_leads(mirror, length):
    """Gamma (phi'(new) - phi'(old)) + G must be one number for all entries that are not at 0.

    Long steps leave the range of the dual for some entries, or would multiply them many times.
    """
    c, phi = constraints.get("simplex"), mirrors.get(mirror)
    rng = np.random.default_rng(0)
    A = rng.dirichlet(np.ones(12), 5).T
    Gamma = 10 ** rng.uniform(-1, 1, A.shape)
    G = length * rng.normal(size=A.shape)
    new = c.stepped(A, G, Gamma, phi)
    np.testing.assert_allclose(new.sum(axis=0), 1.0, rtol=1e-12)
    slope = np.vectorize(lambda a: phi.to_dual(a, phi.params))
    pull = Gamma * (slope(new) - slope(A)) + G
    size = Gamma * (abs(slope(new)) + abs(slope(A))) + abs(G)
    for column, inside, scale in zip(pull.T, (new > 1.01e-9).T, size.T, strict=True):
        gap = column[inside][:, None] - column[inside]
        assert (abs(gap) <= 1e-9 * (scale[inside][:, None] + scale[inside])).all()
        # Entries at 0 would only be pushed further out.
        if (~inside).any():
            assert column[~inside].min() >= column[inside].min() - 1e-6 * scale[inside].max()


def test_entropic_simplex_with_equal_weights_divides_by_the_sum():
    phi = mirrors.get("entropy")
    Z, _ = point(phi)
    A = constraints.get("simplex").apply(Z, np.full(Z.shape, 3.0), phi)
    np.testing.assert_allclose(A, Z / Z.sum(axis=0), rtol=1e-12)


def dual(phi, a):
    out = np.empty(a.size)
    phi.to_dual_block("float64")(np.ascontiguousarray(a.reshape(-1)), phi.params, out)
    return out


@pytest.mark.parametrize("mirror", MAPS)
@many
@given(column=columns(5.0, smallest=1e-3))
def test_simplex_has_one_multiplier_a_column(mirror, column):
    """gamma * (phi'(z) - phi'(a)) is nu where a is free, and at most nu at the lower bound."""
    phi = mirrors.get(mirror)
    z, gamma = column
    a = constraints.get("simplex").apply(z, gamma, phi)
    assert a.sum() == pytest.approx(1, abs=1e-12)
    free = a[:, 0] > 1.001 * phi.floor
    nu = gamma[:, 0] * (dual(phi, z) - dual(phi, a))
    rounding = 1e-9 * gamma[:, 0] * (np.abs(dual(phi, z)) + np.abs(dual(phi, a)))
    highest, lowest = (nu - rounding)[free].max(), (nu + rounding)[free].min()
    assert highest <= lowest
    assert np.all((nu - rounding)[~free] <= lowest)


@pytest.mark.parametrize("mirror", MAPS)
@pytest.mark.parametrize("column", ["tiny", "one huge", "zero", "wide"])
def test_simplex_survives_extreme_columns(mirror, column):
    phi, rng = mirrors.get(mirror), np.random.default_rng(2)
    c, Gamma = constraints.get("simplex"), 10 ** rng.uniform(-6, 6, (50, 4))
    Z = {
        "tiny": 1e-25 * rng.uniform(1, 2, (50, 4)),
        "one huge": np.where(np.arange(50)[:, None] == 20, 1e25, 1e-25) * np.ones(4),
        "zero": np.zeros((50, 4)),
        "wide": 10 ** rng.uniform(-20, 10, (50, 4)),
    }[column]
    A, A32 = c.apply(Z, Gamma, phi), project32(c, phi, Z, Gamma)
    np.testing.assert_allclose(A.sum(axis=0), 1, atol=1e-12)
    np.testing.assert_allclose(A32.sum(axis=0, dtype=float), 1, atol=1e-6)
    assert min(A.min(), A32.min()) >= 0.99 * phi.floor


def minimise(value, z, bounds, inequality):
    """SciPy's answer, from a point inside."""
    start = np.full(z.size, 1e-2)
    options = {"ftol": 1e-15, "maxiter": 1000}
    rule = {"type": "ineq", "fun": inequality}
    return minimize(
        value, start, method="SLSQP", bounds=bounds, constraints=rule, options=options
    ).x


@either_sign
@pytest.mark.parametrize("seed", range(4))
def test_l2_ball_is_scipys_minimiser(seed, nonnegative):
    Z, Gamma = point(QUADRATIC, (6, 1), seed)
    z, gamma = Z[:, 0], Gamma[:, 0]
    bounds = [(0 if nonnegative else None, None)] * z.size
    expected = minimise(lambda a: gamma @ (a - z) ** 2, z, bounds, lambda a: 0.7**2 - a @ a)
    A = constraints.get(f"l2-ball(0.7, nonnegative={nonnegative})").apply(Z, Gamma)
    np.testing.assert_allclose(A[:, 0], expected, atol=1e-5)


@either_sign
@pytest.mark.parametrize("seed", range(4))
def test_l1_ball_is_scipys_minimiser(seed, nonnegative):
    Z, Gamma = point(QUADRATIC, (6, 1), seed)
    split = np.vstack([np.eye(6), np.zeros((6, 6)) if nonnegative else -np.eye(6)])
    z, gamma = Z[:, 0], Gamma[:, 0]
    expected = split.T @ minimise(
        lambda b: gamma @ (split.T @ b - z) ** 2,
        np.zeros(12),
        [(0, None)] * 12,
        lambda b: 1.3 - b.sum(),
    )
    A = constraints.get(f"l1-ball(1.3, nonnegative={nonnegative})").apply(Z, Gamma)
    np.testing.assert_allclose(A[:, 0], expected, atol=1e-5)


@either_sign
@pytest.mark.parametrize("ball", ["l1-ball", "l2-ball"])
@many
@given(column=columns(1e3))
def test_balls_keep_what_is_inside_and_fill_what_is_not(ball, nonnegative, column):
    z, gamma = column
    a = constraints.get(f"{ball}(2, nonnegative={nonnegative})").apply(z, gamma)
    inside = np.maximum(z, 0) if nonnegative else z
    order = 1 if ball == "l1-ball" else 2
    length = np.linalg.norm(inside[:, 0], order)
    if length <= 2:
        np.testing.assert_array_equal(a, inside)
    else:
        assert np.linalg.norm(a[:, 0], order) == pytest.approx(2, rel=1e-12)
        assert np.all(a * inside >= 0)


@either_sign
def test_sparsity_is_the_minimiser_on_a_fine_grid(nonnegative):
    Z, Gamma = point(QUADRATIC, (6, 2))
    c = constraints.get(f"sparsity(0.8, nonnegative={nonnegative})")
    grid = np.linspace(0 if nonnegative else -6, 6, 120_001)
    values = 0.5 * Gamma.reshape(-1, 1) * (grid - Z.reshape(-1, 1)) ** 2 + 0.8 * np.abs(grid)
    A = c.apply(Z, Gamma)
    np.testing.assert_allclose(A.ravel(), grid[values.argmin(axis=1)], atol=1e-4)
    assert (A == 0).any()
    assert (A != 0).any()


def smooth_reference(z, gamma, weight, nonnegative):
    """Least squares in sqrt(gamma) (a - z) and sqrt(weight) (a[i+1] - a[i])."""
    steps = np.sqrt(weight) * np.diff(np.eye(z.size), axis=0)
    rows = np.vstack([np.diag(np.sqrt(gamma)), steps])
    target = np.concatenate([np.sqrt(gamma) * z, np.zeros(z.size - 1)])
    return nnls(rows, target)[0] if nonnegative else np.linalg.lstsq(rows, target)[0]


@either_sign
@pytest.mark.parametrize("weight", [0.0, 0.3, 10.0, 3000.0])
@pytest.mark.parametrize("n", [1, 2, 5, 60])
def test_smoothness_is_the_least_squares_solution(n, weight, nonnegative):
    Z, Gamma = point(QUADRATIC, (n, 5), seed=n)
    A = constraints.get(f"smoothness({weight}, nonnegative={nonnegative})").apply(Z, Gamma)
    for r in range(5):
        expected = smooth_reference(Z[:, r], Gamma[:, r], weight, nonnegative)
        np.testing.assert_allclose(A[:, r], expected, rtol=1e-8, atol=1e-9)


def test_an_overwhelming_smoothness_leaves_the_weighted_mean_even_in_single_precision():
    Z, Gamma = point(QUADRATIC, (100, 2))
    mean = (Gamma * Z).sum(axis=0) / Gamma.sum(axis=0)
    A = project32(constraints.get("smoothness(1e9)"), QUADRATIC, Z, Gamma)
    np.testing.assert_allclose(A, np.broadcast_to(mean, A.shape), rtol=1e-3)


@either_sign
@pytest.mark.parametrize("decreasing", [False, True])
@many
@given(column=columns())
def test_monotone_is_scipys_isotonic_regression(decreasing, nonnegative, column):
    z, gamma = column
    c = constraints.get(f"monotone({decreasing}, nonnegative={nonnegative})")
    fit = isotonic_regression(z[:, 0], weights=gamma[:, 0], increasing=not decreasing).x
    expected = np.maximum(fit, 0) if nonnegative else fit
    np.testing.assert_allclose(c.apply(z, gamma)[:, 0], expected, rtol=1e-9, atol=1e-9)


def best_unimodal_error(z, gamma, nonnegative):
    """The least error over all peaks, each fitted by SciPy."""
    errors = []
    for peak in range(1, z.size + 1):
        rise = isotonic_regression(z[:peak], weights=gamma[:peak]).x
        fall = z[peak:]
        if fall.size:
            fall = isotonic_regression(fall, weights=gamma[peak:], increasing=False).x
        fit = np.concatenate([rise, fall])
        fit = np.maximum(fit, 0) if nonnegative else fit
        errors.append(gamma @ (fit - z) ** 2)
    return min(errors)


@either_sign
@many
@given(column=columns())
def test_unimodal_is_as_good_as_the_best_of_all_peaks(nonnegative, column):
    z, gamma = column
    a = constraints.get(f"unimodal(nonnegative={nonnegative})").apply(z, gamma)
    assert all(one_peak(a))
    error = float(np.sum(gamma * (a - z) ** 2))
    least = best_unimodal_error(z[:, 0], gamma[:, 0], nonnegative)
    assert error == pytest.approx(least, rel=1e-9, abs=1e-9)


def test_of_equally_good_peaks_the_first_is_taken():
    A = constraints.get("unimodal").apply(np.array([[1.0], [0.0], [1.0]]))
    np.testing.assert_allclose(A[:, 0], [1.0, 0.5, 0.5])

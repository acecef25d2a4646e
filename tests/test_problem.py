"""Every combination of pieces either fits or is refused, at once, with the reason and a way out."""

import itertools
import math
import re
from functools import cache

import numpy as np
import pytest
from pieces import CONSTRAINTS, LOSSES, MIRRORS, STEPS

from smartcpd import constraints, losses, mirrors, steps
from smartcpd._fitting.fit import fit
from smartcpd._problem.problem import Problem
from smartcpd.errors import IncompatibleError, InvalidParameterError
from smartcpd.losses import Data

SHAPE = (6, 5, 4)
CHOICES = (["auto", *MIRRORS], ["auto", *CONSTRAINTS], ["auto", *STEPS])
PAIRS = [(0, 1), (1, 2), (2, 3), (0, 3)]
"""Of (loss, mirror, constraint, step), which neighbours must all be fitted together once."""

INSIDE = {
    "nonnegative": lambda c, A: A >= 0,
    "box": lambda c, A: np.clip(A, c.lo, c.hi) == A,
    "simplex": lambda c, A: (A >= 0) & np.isclose(A.sum(axis=0), 1),
    "l1-ball": lambda c, A: np.abs(A).sum(axis=0) <= c.radius * (1 + 1e-9),
    "l2-ball": lambda c, A: np.linalg.norm(A, axis=0) <= c.radius * (1 + 1e-9),
    "monotone": lambda c, A: np.diff(A, axis=0) >= -1e-12,
}


@cache
def data(kind):
    rng = np.random.default_rng(0)
    X = (rng.random(SHAPE) < 0.5) if kind is Data.BINARY else rng.poisson(2.0, SHAPE)
    return X.astype(float)


def build(combination, **changes):
    loss, mirror, constraint, step = combination
    choices = {"mirror": mirror, "constraint": constraint, "step": step} | changes
    return Problem.build(data(losses.get(loss).data), 2, loss, **choices)


@cache
def accepted():
    found = []
    for combination in itertools.product(LOSSES, *CHOICES):
        try:
            build(combination)
        except IncompatibleError:
            continue
        found.append(combination)
    return found


def pairs(combination):
    return {(i, j, combination[i], combination[j]) for i, j in PAIRS}


@cache
def covering():
    """Some of the accepted combinations that hold every accepted pair of neighbours."""
    missing = set().union(*map(pairs, accepted()))
    chosen = []
    for k in np.random.default_rng(0).permutation(len(accepted())):
        new = pairs(accepted()[k]) & missing
        if new:
            chosen.append(accepted()[k])
            missing -= new
    return chosen


@cache
def clash(combination):
    """The message of a combination that is refused; None if it is accepted."""
    try:
        build(combination)
    except IncompatibleError as error:
        return str(error)
    return None


def corrected(combination, message):
    """What the combination becomes by each of the corrections that the message offers."""
    _, advice = message.rsplit("Use ", 1)
    kinds = ("loss", "mirror", "constraint", "step")
    for kind, value in re.findall(r"(\w+)='([\w-]+)'", advice):
        position = kinds.index(kind)
        yield (*combination[:position], value, *combination[position + 1 :])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_clash_names_two_things_and_a_way_out(loss):
    messages = {c: clash(c) for c in itertools.product([loss], *CHOICES)}
    refused = {c: message for c, message in messages.items() if message}
    assert refused
    for combination, message in refused.items():
        assert "Use " in message
        # Mixed steps begin with Jensen steps, and are called by that name.
        names = {c.split("(")[0].replace("mixed", "jensen") for c in combination} - {"auto"}
        blamed = set(re.findall(r"'([\w-]+)|Jensen", message.rsplit("Use ", 1)[0]))
        blamed = {name or "jensen" for name in blamed}
        assert names & blamed, (combination, message)
        assert len(blamed) >= 2, (combination, message)


@pytest.mark.parametrize("loss", LOSSES)
def test_following_the_advice_leads_out_of_a_clash(loss):
    for start in itertools.product([loss], *CHOICES):
        reached, seen = {start}, set()
        while reached and all(clash(c) for c in reached):
            seen |= reached
            reached = {new for c in reached for new in corrected(c, clash(c))} - seen
        assert reached, (start, clash(start))


def test_no_advice_is_what_was_done_already():
    for combination in itertools.product(LOSSES, *CHOICES):
        message = clash(combination)
        assert message is None or combination not in corrected(combination, message), message


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_accepted_fits(loss):
    for combination in (c for c in covering() if c[0] == loss):
        _, mirror, constraint, step = combination
        choices = {"mirror": mirror, "constraint": constraint, "step": step}
        X = data(losses.get(loss).data)
        result = fit(X, 2, loss, **choices, max_epochs=2, random_state=0)
        assert math.isfinite(result.loss), combination
        problem = build(combination)
        for A, c in zip(result.model.factors, problem.constraints, strict=True):
            assert np.isfinite(A).all(), combination
            assert c.signed or (A >= 0).all(), combination
            assert np.all(INSIDE.get(c.name, lambda c, A: True)(c, A)), combination


def test_the_covering_covers():
    held = set().union(*map(pairs, covering()))
    assert all(pairs(combination) <= held for combination in accepted())
    assert len(covering()) < len(accepted()) / 4


class TestDefaults:
    @pytest.mark.parametrize("loss", LOSSES)
    def test_every_loss_has_a_working_default(self, loss):
        problem = build((loss, "auto", "auto", "auto"))
        assert all(m.name for phase in problem.phases for m in phase.mirrors)
        nonnegative = problem.loss.domain is losses.Domain.NONNEGATIVE
        assert all(c.signed != nonnegative for c in problem.constraints)

    @pytest.mark.parametrize("loss", ["poisson", "gamma", "bernoulli-odds", "beta(0.5)"])
    def test_the_sign_of_a_penalty_follows_the_loss(self, loss):
        problem = build((loss, "auto", "sparsity(0.1)", "auto"))
        assert not any(c.signed for c in problem.constraints)
        signed = build(("gaussian", "auto", "sparsity(0.1)", "auto"))
        assert all(c.signed for c in signed.constraints)

    def test_a_description_names_every_choice(self):
        text = str(build(("poisson", "burg", "nonnegative", "jensen")))
        for part in ("6x5x4", "rank 2", "poisson", "burg", "nonnegative", "jensen"):
            assert part in text


class TestOneAMode:
    def test_a_list(self):
        problem = build(("poisson", ["entropy", "burg", "auto"], "auto", "adagrad"))
        assert [m.name for m in problem.phases[0].mirrors] == ["entropy", "burg", "entropy"]

    def test_a_dict_leaves_the_others_at_their_default(self):
        problem = build(("poisson", "auto", {1: "simplex"}, "auto"))
        assert [c.name for c in problem.constraints] == ["nonnegative", "simplex", "nonnegative"]

    def test_pieces_instead_of_names(self):
        chosen = [constraints.get("box(0, 2)"), "simplex", constraints.get("nonnegative")]
        problem = build(("poisson", mirrors.get("entropy"), chosen, steps.get("adagrad")))
        assert [str(c) for c in problem.constraints] == ["box(0, 2)", "simplex", "nonnegative"]

    def test_a_fit_obeys_all_of_them(self):
        result = fit(
            data(Data.COUNTS),
            2,
            "poisson",
            mirror={0: "burg"},
            constraint=["box(0.1, 3)", "simplex", "monotone"],
            max_epochs=3,
            random_state=0,
        )
        box, simplex, monotone = result.model.factors
        assert box.min() >= 0.1
        assert box.max() <= 3
        np.testing.assert_allclose(simplex.sum(axis=0), 1)
        assert (np.diff(monotone, axis=0) >= 0).all()

    def test_the_clash_names_its_mode(self):
        with pytest.raises(IncompatibleError, match=r"mode 2"):
            build(("poisson", "auto", [*["nonnegative"] * 2, "free"], "auto"))
        with pytest.raises(IncompatibleError, match=r"mode 1"):
            build(("gaussian", {1: "entropy"}, "free", "auto"))

    @pytest.mark.parametrize("kind", ["mirror", "constraint"])
    def test_a_wrong_length_is_refused(self, kind):
        with pytest.raises(InvalidParameterError, match=rf"{kind} lists 2 choices.* 3 modes"):
            build(("poisson", "auto", "auto", "auto"), **{kind: ["auto", "auto"]})

    @pytest.mark.parametrize("mode", [3, -1, "first"])
    def test_a_mode_that_is_not_there_is_refused(self, mode):
        with pytest.raises(InvalidParameterError, match=r"mode .*0 to 2"):
            build(("poisson", "auto", {mode: "simplex"}, "auto"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mirror": "entrophy"}, "Unknown mirror 'entrophy'. Did you mean 'entropy'?"),
        ({"constraint": "simplx"}, "Unknown constraint 'simplx'. Did you mean 'simplex'?"),
        ({"step": "jenson"}, "Unknown step 'jenson'. Did you mean 'jensen'?"),
        ({"constraint": "xyz"}, "Unknown constraint 'xyz'. Names: "),
        ({"constraint": "box(2, 1)"}, "lo=2, hi=1"),
        ({"constraint": "box(1"}, "Cannot read constraint 'box(1'"),
        ({"constraint": "box(1, 2, 3)"}, "does not fit its form"),
        ({"mirror": "power(0.5)"}, "c=0.5"),
        ({"step": "constant(-1)"}, "eta must be positive"),
        ({"constraint": 3}, "constraint must be a name or a Constraint; got 3"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    with pytest.raises(InvalidParameterError) as error:
        build(("poisson", "auto", "auto", "auto"), **change)
    assert message in str(error.value)


@pytest.mark.parametrize("rank", [0, -1, 2.5, "3", None, math.nan])
def test_a_rank_that_is_not_a_number_of_components_is_refused(rank):
    with pytest.raises(InvalidParameterError, match=r"rank must be a whole number of at least 1"):
        Problem.build(data(Data.COUNTS), rank, "poisson")


def test_numpy_integers_are_ranks():
    assert Problem.build(data(Data.COUNTS), np.int64(2), "poisson").rank == 2

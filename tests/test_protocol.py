"""An estimator by its methods: it answers as scikit-learn's own classes would, without them."""

import ast
import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils import estimator_html_repr, get_tags
from sklearn.utils.validation import check_is_fitted

import smartcpd
from smartcpd import LabelledTensor, Mode, SmartCPD, datasets
from smartcpd._estimator.protocol import ROUTED
from smartcpd.errors import IncompatibleError, InvalidDataError, InvalidParameterError

X, _ = datasets.count((9, 8), 2, a_max=1.5, random_state=0)
QUICK = {"rank": 2, "loss": "poisson", "max_epochs": 3, "random_state": 0}
WEIGHTS = np.linspace(0.5, 2.0, 9)

WITHOUT = """
import sys
import numpy as np
import smartcpd

X = np.random.default_rng(0).poisson(2.0, (9, 8, 7))
est = smartcpd.SmartCPD(2, "poisson", random_state=0, max_epochs=3).fit(X)
heavy = ["sklearn", "pandas", "scipy.stats", "matplotlib", "duckdb", "dask"]
later = ["smartcpd.report", "smartcpd.quality", "smartcpd._data.tables", "smartcpd._inference.s"]
print(*[name for name in sys.modules if name.startswith((*heavy, *later))])
est.transform(X), est.score(X), repr(est), est._repr_html_(), est.set_params(rank=3)
print(*[name for name in sys.modules if name.startswith(tuple(heavy))])

sys.modules["sklearn"] = None  # as if it were not installed
assert est.set_output(transform="pandas").transform(X).shape == (9, 2)
try:
    smartcpd.SmartCPD().predict([[0, 0, 0]])
except (ValueError, AttributeError) as error:
    print(type(error).__name__)
for needed in (est.get_metadata_routing, est.set_fit_request):
    try:
        needed()
    except smartcpd.errors.MissingExtraError as error:
        print(error)
"""


def like_scikit_learn(**parameters):
    """An estimator of scikit-learn's own classes, with the same parameters and methods."""
    kinds = (ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator)
    methods = {name: getattr(SmartCPD, name) for name in ("__init__", *ROUTED)}
    return type("SmartCPD", kinds, methods)(**parameters)


@pytest.fixture(scope="module")
def fitted():
    return SmartCPD(**QUICK).fit(X)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def frame():
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, index=list("abcdefghi"), columns=list("ABCDEFGH"))


@pytest.mark.slow
def test_a_program_can_do_without_scikit_learn():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    by_the_fit, by_questions, error, *extras = done.stdout.splitlines()
    assert by_the_fit == by_questions == ""
    assert error == "NotFittedError"
    assert len(extras) == 2
    assert all("smartcpd[sklearn]" in line for line in extras)


def test_one_module_imports_scikit_learn_late_and_what_is_public_of_it():
    root = Path(smartcpd.__file__).parent
    asking = [path for path in root.rglob("*.py") if "sklearn" in path.read_text()]
    assert asking
    for path in asking:
        tree = ast.parse(path.read_text())
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        plain = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
        assert not [a for node in plain for a in node.names if a.name.startswith("sklearn")], path
        theirs = [node for node in froms if str(node.module).startswith("sklearn")]
        assert not theirs or path == root / "_estimator" / "protocol.py", path
        assert not [node for node in theirs if node in tree.body]
        names = [f"{node.module}.{alias.name}" for node in theirs for alias in node.names]
        assert not [name for name in names if "._" in name]


class TestParameters:
    @pytest.mark.parametrize(
        "parameters",
        [
            {},
            {"rank": 3, "loss": "gamma"},
            {**QUICK, "constraint": "nonnegative", "solver": "lbfgs", "tol": 1e-6},
            {**QUICK, "constraint": {0: "simplex", 1: "free"}, "mirror": ["auto", "entropy"]},
        ],
    )
    def test_are_shown_as_scikit_learn_shows_them(self, parameters):
        ours, theirs = SmartCPD(**parameters), like_scikit_learn(**parameters)
        assert repr(ours) == repr(theirs)
        assert list(ours.get_params().items()) == list(theirs.get_params().items())
        with sklearn.config_context(print_changed_only=False):
            assert repr(ours).count("=") == len(inspect.signature(SmartCPD).parameters)

    def test_of_any_size_are_shown_in_short(self):
        text = repr(SmartCPD(2, init=[np.zeros((40, 2)), np.ones((40, 2))]))
        assert len(text) < 400
        assert " ... " in text
        assert max(map(len, text.splitlines())) < 330

    def test_of_another_name_are_refused(self):
        est = SmartCPD(rank=2)
        for name in ("ranks", "rank__a", "ranks__a", "model_"):
            with pytest.raises(InvalidParameterError, match=f"'{name}'.*, loss, .*, rank, "):
                est.set_params(**{name: 3})
        assert est.set_params() is est
        assert est.get_params()["rank"] == 2

    def test_of_parameters(self):
        inner = SmartCPD(rank=4)
        est = SmartCPD(init=SmartCPD()).set_params(init__rank=5, init=inner)
        assert est.init is inner
        assert inner.rank == est.get_params()["init__rank"] == 5
        assert "init__rank" not in est.get_params(deep=False)

    def test_of_subclasses(self):
        class Own(SmartCPD):
            def __init__(self, rank=2, extra=None):
                super().__init__(rank)
                self.extra = extra

        assert repr(clone(Own(extra="e"))) == "Own(extra='e')"
        assert Own().get_params() == {"extra": None, "rank": 2}


class TestCopies:
    def test_keep_what_was_chosen(self, routing):
        est = SmartCPD(**QUICK).set_output(transform="pandas").set_fit_request(sample_weight=True)
        for other in (clone(est), copy.deepcopy(est), pickle.loads(pickle.dumps(est))):
            assert str(other.get_metadata_routing()) == str(est.get_metadata_routing())
            assert type(other.fit_transform(X)).__name__ == "DataFrame"
        clone(est).set_fit_request(sample_weight=False)
        assert est.get_metadata_routing().fit.requests["sample_weight"] is True

    def test_of_scikit_learn_are_fresh_and_deep(self, fitted):
        given = [np.ones((9, 2)), np.ones((8, 2))]
        other = clone(fitted.__class__(2, init=given))
        assert other.init is not given
        np.testing.assert_array_equal(other.init[0], given[0])
        assert vars(clone(fitted)).keys() == vars(SmartCPD()).keys()


class TestFitted:
    def test_or_not(self, fitted):
        check_is_fitted(fitted)
        for ask in (
            lambda est: check_is_fitted(est),
            lambda est: est.transform(X),
            lambda est: est.components_,
            lambda est: est.get_feature_names_out(),
            lambda est: est.report(),
        ):
            with pytest.raises(NotFittedError):
                ask(SmartCPD())
        assert not hasattr(SmartCPD(), "n_iter_")

    def test_tags_are_those_of_a_transformer(self, fitted):
        expected = get_tags(like_scikit_learn())
        expected.input_tags.sparse = expected.input_tags.allow_nan = True
        assert get_tags(fitted) == expected

    def test_a_diagram_shows_it(self, fitted):
        pipeline = make_pipeline(FunctionTransformer(), SmartCPD(2, loss="poisson"))
        for thing in (pipeline, fitted):
            page = estimator_html_repr(thing)
            assert "SmartCPD" in page
            assert "poisson" in page
        assert "2 components" in estimator_html_repr(fitted)
        assert "SmartCPD(loss=&#x27;poisson&#x27;, rank=2)" in pipeline._repr_html_()


class TestColumns:
    def test_are_those_of_the_fit(self, frame):
        est = SmartCPD(**QUICK).fit(frame)
        for ask in (est.transform, est.score, est.score_samples):
            ask(frame[:4])
            with pytest.raises(InvalidDataError, match=r"should match .*\n.* same order as they"):
                ask(frame[frame.columns[::-1]])
            with pytest.raises(InvalidDataError, match=r"unseen at fit time:\n- Y\n- Z\n.*\n- A\n"):
                ask(frame.rename(columns={"A": "Z", "C": "Y"}))
            with pytest.raises(InvalidDataError, match=r"yet now missing:\n- A\n- B\n$"):
                ask(frame[list("CDEFGH")])
            with pytest.warns(UserWarning, match="X does not have valid feature names, but Smart"):
                ask(X[:4])
        others = frame.rename(columns=lambda name: f"other {name}")
        with pytest.raises(InvalidDataError) as refused:
            est.transform(others)
        assert str(refused.value).count("\n- ") == 2 * 6
        assert str(refused.value).count("\n- ...") == 2

    def test_without_names_in_the_fit(self, fitted, frame):
        with pytest.warns(UserWarning, match="X has feature names, but SmartCPD was fitted"):
            fitted.transform(frame)

    def test_are_as_many_as_in_the_fit(self, fitted):
        for ask in (fitted.transform, fitted.score, fitted.score_samples):
            with pytest.raises(ValueError, match="X has 5 features, but SmartCPD is expecting 8"):
                ask(X[:, :5])

    def test_may_be_what_is_new(self, fitted, frame):
        assert fitted.transform(X[:, :5], mode=1).shape == (5, 2)
        labelled = SmartCPD(**QUICK).fit(frame)
        new = frame[["A", "B"]].rename(columns={"A": "new"})
        shown = labelled.set_output(transform="pandas").transform(new, mode="column")
        assert list(shown.index) == ["new", "B"]

    def test_as_names_for_names(self, fitted, frame):
        names = [f"feature {k}" for k in range(8)]
        assert len(fitted.get_feature_names_out(names)) == 2
        with pytest.raises(InvalidParameterError, match="input_features should have length equal"):
            fitted.get_feature_names_out(names[:7])
        labelled = SmartCPD(**QUICK).fit(frame)
        assert len(labelled.get_feature_names_out(list("ABCDEFGH"))) == 2
        with pytest.raises(InvalidParameterError, match="column 0 is 'A'; got 'feature 0'"):
            labelled.get_feature_names_out(names)


class TestOutput:
    @pytest.mark.parametrize("package", ["pandas", "polars"])
    def test_is_a_table(self, package, frame):
        tables = pytest.importorskip(package)
        est = SmartCPD(**QUICK).fit(X)
        rows = est.transform(X)
        assert isinstance(rows, np.ndarray)
        assert est.set_output(transform=package).set_output(transform=None) is est
        shown = est.transform(X)
        assert isinstance(shown, tables.DataFrame)
        assert list(shown.columns) == ["component 1", "component 2"]
        np.testing.assert_array_equal(shown.to_numpy(), rows)
        assert isinstance(est.fit_transform(X), tables.DataFrame)
        assert isinstance(est.set_output(transform="default").transform(X), np.ndarray)

    def test_keeps_the_labels_of_rows(self, frame):
        est = SmartCPD(**QUICK).set_output(transform="pandas")
        assert list(est.fit_transform(frame).index) == list("abcdefghi")
        modes = [Mode("day", list("abcdefghi")), Mode("place", list("ABCDEFGH"))]
        assert list(est.fit_transform(LabelledTensor(X, modes)).index) == list("abcdefghi")
        assert list(est.fit_transform(X).index) == list(range(9))

    def test_may_be_chosen_for_all_estimators(self, fitted):
        pytest.importorskip("pandas")
        with sklearn.config_context(transform_output="pandas"):
            assert type(fitted.transform(X)).__name__ == "DataFrame"
            asked = clone(fitted).set_output(transform="default")
            assert isinstance(asked.fit_transform(X), np.ndarray)
        with (
            sklearn.config_context(transform_output="lists"),
            pytest.raises(InvalidParameterError, match="'polars'; got 'lists'"),
        ):
            fitted.transform(X)

    def test_of_a_pipeline(self):
        pytest.importorskip("pandas")
        pipeline = make_pipeline(MaxAbsScaler(), SmartCPD(**QUICK))
        shown = pipeline.set_output(transform="pandas").fit_transform(X)
        assert list(shown.columns) == list(pipeline.get_feature_names_out())

    def test_of_another_kind_is_refused(self):
        with pytest.raises(InvalidParameterError, match="got 'numpy'"):
            SmartCPD().set_output(transform="numpy")


class TestMetadata:
    def test_is_what_methods_take(self):
        ours = SmartCPD().get_metadata_routing()
        assert str(ours) == str(like_scikit_learn().get_metadata_routing())
        assert set(ours.fit.requests) == {"sample_weight", "mask", "weights", "exposure"}

    def test_goes_through_a_pipeline(self, routing):
        est = SmartCPD(**QUICK).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(FunctionTransformer(), est).fit(X, sample_weight=WEIGHTS)
        expected = SmartCPD(**QUICK).fit(X, sample_weight=WEIGHTS)
        np.testing.assert_array_equal(pipeline[-1].factors_[1], expected.factors_[1])

    def test_goes_through_searches(self, routing):
        est = SmartCPD(**QUICK).set_fit_request(sample_weight="importance")
        given = {"importance": WEIGHTS}
        assert np.isfinite(cross_validate(est, X, cv=2, params=given)["test_score"]).all()
        found = GridSearchCV(est, {"rank": [1, 2]}, cv=2).fit(X, **given)
        expected = SmartCPD(**QUICK | found.best_params_).fit(X, sample_weight=WEIGHTS)
        np.testing.assert_array_equal(found.best_estimator_.factors_[1], expected.factors_[1])

    def test_must_be_asked_for(self, routing):
        with pytest.raises(ValueError, match=r"SmartCPD.fit|set_fit_request"):
            make_pipeline(SmartCPD(**QUICK)).fit(X, sample_weight=WEIGHTS)

    @pytest.mark.parametrize("method", ROUTED)
    def test_of_each_method(self, method, routing):
        est = SmartCPD()
        assert getattr(est, f"set_{method}_request")(weights=True, mask=False) is est
        requests = getattr(est.get_metadata_routing(), method).requests
        assert (requests["weights"], requests["mask"]) == (True, False)
        getattr(est, f"set_{method}_request")(mask=None)
        assert getattr(est.get_metadata_routing(), method).requests["weights"] is True

    def test_that_is_unknown_is_refused(self, routing):
        est = SmartCPD()
        with pytest.raises(InvalidParameterError, match="'colour'; it takes sample_weight, mask"):
            est.set_fit_request(colour=True)
        with pytest.raises(ValueError, match="valid identifier"):
            est.set_fit_request(mask="no name")
        assert est.get_metadata_routing().fit.requests["mask"] is None

    def test_is_off_by_default(self):
        with pytest.raises(IncompatibleError, match="enable_metadata_routing=True"):
            SmartCPD().set_fit_request(sample_weight=True)


def test_rows_of_a_fit_know_what_the_fit_was_told():
    mask = np.ones(X.shape, bool)
    mask[3, 2:] = False
    spoiled = np.where(mask, X, 99)
    rows = SmartCPD(**QUICK).fit_transform(spoiled, mask=mask)
    expected = SmartCPD(**QUICK).fit(X, mask=mask).transform(X, mask=mask)
    np.testing.assert_allclose(rows, expected)

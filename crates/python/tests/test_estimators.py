"""Estimators: scikit-learn's own checks, known answers, and inputs of every kind."""

import pickle

import numpy as np
import pytest

import veilsum
from veilsum import FuzzyCMeans, KMeans


@pytest.fixture
def blobs():
    random = np.random.default_rng(3)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [3.0, 5.0]])
    rows = np.concatenate([centre + random.normal(size=(200, 2)) for centre in centres])
    return rows, centres


def reference(rows, start, m, rounds):
    """Fuzzy c-means as Bezdek has it, in NumPy."""
    centres = start.copy()
    for _ in range(rounds):
        squares = ((rows[:, None, :] - centres) ** 2).sum(-1)
        weights = squares ** (-1 / (m - 1))
        u = weights / weights.sum(1, keepdims=True)
        centres = (u**m).T @ rows / (u**m).sum(0)[:, None]
    squares = ((rows[:, None, :] - centres) ** 2).sum(-1)
    weights = squares ** (-1 / (m - 1))
    u = weights / weights.sum(1, keepdims=True)
    return centres, u, (u**m * squares).sum()


@pytest.mark.parametrize("m", [2.0, 1.5, 3.0])
def test_fuzzy_c_means_is_that_of_numpy(blobs, m):
    rows, start = blobs
    model = FuzzyCMeans(3, m=m, init=start, max_iter=12, tol=0).fit(rows)
    centres, u, objective = reference(rows, start, m, 12)
    assert np.abs(model.cluster_centers_ - centres).max() < 1e-10
    assert np.abs(model.predict_proba(rows) - u).max() < 1e-10
    assert model.objective_ == pytest.approx(objective)
    assert model.score(rows) == pytest.approx(-objective)
    assert (model.labels_ == u.argmax(1)).all() and model.n_iter_ == 12


def test_a_row_on_a_centre_belongs_to_it_alone(blobs):
    rows, start = blobs
    model = FuzzyCMeans(3, init=start, random_state=0).fit(rows)
    assert (model.predict_proba(model.cluster_centers_) == np.eye(3)).all()
    far = model.predict_proba(np.array([[1e140, 0.0]]))
    assert far.sum() == pytest.approx(1) and np.isfinite(far).all()


def test_k_means_agrees_with_scikit_learn(blobs):
    cluster = pytest.importorskip("sklearn.cluster")
    rows, start = blobs
    ours = KMeans(3, init=start, tol=0).fit(rows)
    theirs = cluster.KMeans(3, init=start, n_init=1, tol=0, algorithm="lloyd").fit(rows)
    assert np.abs(ours.cluster_centers_ - theirs.cluster_centers_).max() < 1e-10
    assert ours.inertia_ == pytest.approx(theirs.inertia_) and (ours.labels_ == theirs.labels_).all()


def test_indices_and_restarts(blobs):
    rows, _ = blobs
    model = FuzzyCMeans(3, n_init=4, compute_indices=True, random_state=1).fit(rows)
    assert 0 < model.indices_["partition_coefficient"] <= 1 and model.converged_
    one = [FuzzyCMeans(3, random_state=seed).fit(rows).objective_ for seed in range(4)]
    assert model.objective_ <= min(one) * (1 + 1e-6)


def test_a_seed_gives_the_same_result_for_any_number_of_threads(blobs):
    rows, _ = blobs
    a, b = (FuzzyCMeans(4, random_state=5).fit(rows) for _ in range(2))
    assert (a.cluster_centers_ == b.cluster_centers_).all()
    assert (pickle.loads(pickle.dumps(a)).predict(rows) == a.predict(rows)).all()


def test_rows_of_every_kind_give_the_same(blobs):
    rows, start = blobs
    expected = FuzzyCMeans(3, init=start).fit(rows)
    tables = {"list": rows.tolist(), "fortran": np.asfortranarray(rows), "read-only": rows.copy()}
    tables["read-only"].flags.writeable = False
    for name, make in [
        ("pandas", lambda library: library.DataFrame(rows, columns=["x", "y"])),
        ("polars", lambda library: library.DataFrame(rows, schema=["x", "y"])),
        ("pyarrow", lambda library: library.table({"x": rows[:, 0], "y": rows[:, 1]})),
    ]:
        try:
            tables[name] = make(__import__(name))
        except ImportError:
            print(f"SKIPPED: {name} is not installed")
    for name, table in tables.items():
        model = FuzzyCMeans(3, init=start).fit(table)
        assert (model.cluster_centers_ == expected.cluster_centers_).all(), name
        if name in ("pandas", "polars", "pyarrow"):
            assert list(model.feature_names_in_) == ["x", "y"]
            with pytest.warns(UserWarning, match="valid feature names"):
                model.predict(rows)


def test_bad_rows_are_named():
    model = FuzzyCMeans(2, random_state=0)
    with pytest.raises(ValueError, match="NaN"):
        model.fit([[0.0], [np.nan], [1.0]])
    with pytest.raises(ValueError, match="infinity"):
        model.fit([[0.0], [np.inf], [1.0]])
    with pytest.raises(ValueError, match="n_samples=1"):
        model.fit([[0.0]])
    with pytest.raises(veilsum.errors.NotFittedError):
        FuzzyCMeans().predict([[0.0]])
    with pytest.raises(ValueError, match="m must be"):
        FuzzyCMeans(2, m=1.0).fit([[0.0], [1.0]])


def test_the_fuzzifier_follows_from_columns_and_rows():
    rows = np.random.default_rng(3).normal(size=(500, 8))
    assert [FuzzyCMeans(2, random_state=0).fit(rows[:, :d]).m_ for d in (2, 8)] == [2.0, 1.51]
    assert FuzzyCMeans(2, m=1.7, random_state=0).fit(rows).m_ == 1.7


try:
    from sklearn.utils.estimator_checks import parametrize_with_checks
except ImportError:
    print("SKIPPED: scikit-learn is not installed, so its checks do not run")
else:

    @parametrize_with_checks([FuzzyCMeans(), KMeans()])
    def test_scikit_learn(estimator, check):
        check(estimator)

    def test_in_a_pipeline_and_a_search(blobs):
        from sklearn.base import clone, is_clusterer
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        rows, _ = blobs
        assert is_clusterer(FuzzyCMeans()) and clone(FuzzyCMeans(4)).n_clusters == 4
        pipeline = make_pipeline(StandardScaler(), FuzzyCMeans(3, random_state=0)).set_output(transform="default")
        assert pipeline.fit(rows).predict_proba(rows).shape == (600, 3)
        search = GridSearchCV(FuzzyCMeans(random_state=0), {"n_clusters": [2, 3]}, cv=2).fit(rows)
        assert search.best_params_["n_clusters"] == 3
        pandas = pytest.importorskip("pandas")
        framed = FuzzyCMeans(3, random_state=0).set_output(transform="pandas").fit(rows).transform(rows)
        assert isinstance(framed, pandas.DataFrame) and list(framed.columns)[0] == "fuzzycmeans0"

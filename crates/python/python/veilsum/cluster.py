"""Estimators with the interface of scikit-learn, which need NumPy alone.

They compute with the kernel that sites of a federation answer with: a fit here is the run of a federation whose rows are all in one
place, without masks. What a federation finds from the same first centres is the same up to the rounding of its totals.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np

from . import _core
from ._rows import matrix
from .errors import InputError, NotFittedError

__all__ = ["FuzzyCMeans", "KMeans"]

#: Rows that first centres are looked for among, and the spread of columns is estimated from: at least so many, if there are.
_SAMPLE = 10_000
# Above this the squares of distances leave the range of a double.
_LARGEST = 1e149


class _Estimator:
    """What scikit-learn asks of an estimator, without scikit-learn."""

    _sklearn_auto_wrap_output_keys = {"transform"}

    @classmethod
    def _parameters(cls) -> list[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any):
        """Sets parameters by name, and returns the estimator."""
        known = self._parameters()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = {n: p.default for n, p in inspect.signature(type(self).__init__).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if v is not usual[n] and repr(v) != repr(usual[n])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self):
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="clusterer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float64"]),
            input_tags=InputTags(),
        )

    def set_output(self, *, transform: str | None = None):
        """Which container ``transform`` returns, ``"default"``, ``"pandas"`` or ``"polars"``; needs scikit-learn."""
        if transform is not None:
            config = dict(getattr(self, "_sklearn_output_config", {}))
            config["transform"] = transform
            self._sklearn_output_config = config
        return self

    def _contained(self, result: np.ndarray, x: Any):
        if "sklearn" not in sys.modules:
            return result
        from sklearn.utils._set_output import _wrap_data_with_container

        return _wrap_data_with_container("transform", result, x, self)

    # ---- Rows ---------------------------------------------------------------------------------------------------------

    def _first(self, x: Any) -> np.ndarray:
        """Rows to fit, with their number of columns and their names kept."""
        array, names = matrix(x)
        self._check_shape(array)
        if names is None:
            vars(self).pop("feature_names_in_", None)
        else:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self.n_features_in_ = array.shape[1]
        return array

    def _again(self, x: Any) -> np.ndarray:
        """Rows of the shape that the fit had."""
        if not hasattr(self, "cluster_centers_"):
            raise _not_fitted(type(self).__name__)
        array, names = matrix(x)
        self._check_names(names)
        self._check_shape(array)
        if array.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {array.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input."
            )
        _finite(array)
        return array

    def _check_shape(self, array: np.ndarray) -> None:
        for place, what in enumerate(["sample", "feature"]):
            if array.shape[place] == 0:
                raise ValueError(
                    f"Found array with 0 {what}(s) (shape={array.shape}) while a minimum of 1 is required by {type(self).__name__}."
                )

    def _check_names(self, names: list[str] | None) -> None:
        fitted = getattr(self, "feature_names_in_", None)
        own = type(self).__name__
        if fitted is None and names is not None:
            warnings.warn(f"X has feature names, but {own} was fitted without feature names", UserWarning, stacklevel=4)
        elif fitted is not None and names is None:
            warnings.warn(
                f"X does not have valid feature names, but {own} was fitted with feature names", UserWarning, stacklevel=4
            )
        elif fitted is not None and list(fitted) != list(names or ()):
            lines = ["The feature names should match those that were passed during fit."]
            strange, lacking = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
            if strange:
                lines += ["Feature names unseen at fit time:", *(f"- {name}" for name in strange)]
            if lacking:
                lines += ["Feature names seen at fit time, yet now missing:", *(f"- {name}" for name in lacking)]
            if not strange and not lacking:
                lines.append("Feature names must be in the same order as they were in fit.")
            raise ValueError("\n".join(lines) + "\n")


def _not_fitted(name: str) -> NotFittedError:
    words = f"This {name} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
    if "sklearn" not in sys.modules:
        return NotFittedError(words)
    from sklearn.exceptions import NotFittedError as TheirNotFittedError

    return type("NotFittedError", (NotFittedError, TheirNotFittedError), {"__module__": "veilsum.errors"})(words)


def _finite(array: np.ndarray) -> None:
    # A sum is finite only where every value is; where it is not, the values are looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(array.sum()):
            return
    if np.isnan(array).any():
        raise ValueError("Input X contains NaN.\nLeave rows with missing values out, or fill them in, first.")
    if np.isinf(array).any():
        raise ValueError("Input X contains infinity or a value too large for dtype('float64').")


def _random(state: Any) -> np.random.Generator:
    if isinstance(state, np.random.Generator):
        return state
    if isinstance(state, np.random.RandomState):
        return np.random.default_rng(state.randint(2**31 - 1))
    if state is np.random:
        return np.random.default_rng(np.random.randint(2**31 - 1))
    if state is None or isinstance(state, Integral):
        return np.random.default_rng(state)
    raise ValueError(f"{state!r} cannot be used to seed a random number generator")


class _Centres(_Estimator):
    """What clusters with centres share."""

    # Of the objective; 1 for the sum of squared distances to the nearest centre.
    def _fuzzifier(self) -> float:
        raise NotImplementedError

    def _algorithm(self, tolerance: float) -> dict[str, Any]:
        raise NotImplementedError

    def _checked(self, n: int) -> None:
        k = self.n_clusters
        if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
            raise ValueError(f"n_clusters must be a whole number from 1 on, and is {k!r}")
        for name, least in [("max_iter", 1), ("n_init", 1)]:
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ValueError(f"{name} must be a whole number from {least} on, and is {value!r}")
        if not isinstance(self.tol, Real) or not self.tol >= 0:
            raise ValueError(f"tol must be 0 or more, and is {self.tol!r}")
        if not np.isfinite(float(self.tol)):
            raise ValueError(f"tol must be finite, and is {self.tol!r}")
        if n < k:
            raise ValueError(f"n_samples={n} should be >= n_clusters={k}.")

    def _starts(self, sample: np.ndarray, array: np.ndarray, random: np.random.Generator) -> np.ndarray:
        k, d = int(self.n_clusters), self.n_features_in_
        if isinstance(self.init, str):
            if self.init == "k-means++":
                seeds = random.integers(2**63, size=int(self.n_init))
                return np.stack([_core.plus_plus(sample, k, int(seed)) for seed in seeds])
            if self.init == "random":
                return np.stack([array[random.choice(len(array), k, replace=False)] for _ in range(int(self.n_init))])
            raise ValueError(f"init must be 'k-means++', 'random' or an array, and is {self.init!r}")
        init, _ = matrix(self.init)
        if init.shape != (k, d):
            raise ValueError(f"the shape of init is {init.shape}, and must be (n_clusters, n_features) = {(k, d)}")
        _finite(init)
        return init[None]

    # ---- The interface ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None):
        """Finds the centres.

        Parameters
        ----------
        X : table or array of shape (n_samples, n_features)
            Rows, in any units; finite numbers. A C-contiguous float64 array is read where it lies.
        y : ignored

        Returns
        -------
        self
        """
        rows = self._first(X)
        self._checked(len(rows))
        flat = rows.ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            # Where the squares have a small sum every value is finite and small: one pass, where the checks are four.
            small = np.dot(flat, flat) <= min(_LARGEST, 1e150) ** 2
        if not small:
            _finite(rows)
            if np.abs(rows).max(initial=0.0) > _LARGEST:
                raise ValueError(f"values must be at most {_LARGEST:g} in size: take another unit")
        random = _random(self.random_state)
        sample, spread = rows, 0.0
        # What neither first centres nor the tolerance need is not looked at.
        if self.tol > 0 or isinstance(self.init, str):
            most = max(_SAMPLE, 100 * int(self.n_clusters))
            if len(rows) > most:
                sample = rows[np.sort(random.choice(len(rows), most, replace=False))]
            _finite(sample)
            with np.errstate(over="ignore"):
                spread = float(np.sqrt(np.mean(np.var(sample, axis=0))))
        starts = np.ascontiguousarray(self._starts(sample, rows, random), dtype=np.float64)
        # Rows without spread have come to rest as soon as nothing moves.
        tol = max(float(self.tol) * spread, np.finfo(float).tiny) if self.tol > 0 else 0.0
        algorithm = json.dumps(self._algorithm(tol))
        validity = json.dumps(
            {"full": bool(self.compute_indices), "vectors": bool(self.compute_indices),
             "judge_m": max(self._fuzzifier(), 1.0) if self._fuzzifier() > 1 else 2.0}
        )  # fmt: skip
        try:
            told, self.labels_ = _core.fit(rows, algorithm, validity, starts)
        except InputError:
            _finite(rows)
            raise
        outcome = json.loads(told)
        centres = np.array(outcome["centres"]["values"]).reshape(outcome["centres"]["k"], -1)
        self.cluster_centers_ = np.ascontiguousarray(centres)
        self.n_iter_ = int(outcome["rounds"])
        self.converged_ = bool(outcome["converged"])
        self.objective_ = float("inf") if outcome["objective"] is None else float(outcome["objective"])
        self.indices_ = {name: value for name, value in outcome["indices"].items() if value is not None}
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of every row: that of the nearest centre, from 0; among equals the lowest.

        Returns
        -------
        labels : int64 array of shape (n_samples,)
        """
        return _core.nearest(self._again(X), self.cluster_centers_)

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Fits, and returns ``labels_``."""
        return self.fit(X).labels_

    def transform(self, X: Any):
        """Distances of every row from every centre, in the units of the rows.

        Returns
        -------
        distances : float64 array of shape (n_samples, n_clusters)
        """
        return self._contained(_core.distances(self._again(X), self.cluster_centers_), X)

    def fit_transform(self, X: Any, y: Any = None):
        """Fits, and returns the distances of the same rows."""
        return self.fit(X).transform(X)

    def score(self, X: Any, y: Any = None) -> float:
        """The objective of these rows at the centres, negative: larger is better."""
        return -float(_core.objective(self._again(X), self.cluster_centers_, self._fuzzifier()))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of ``transform``."""
        if not hasattr(self, "cluster_centers_"):
            raise _not_fitted(type(self).__name__)
        own = type(self).__name__.lower()
        return np.asarray([f"{own}{place}" for place in range(len(self.cluster_centers_))], dtype=object)


class FuzzyCMeans(_Centres):
    """Fuzzy c-means (Bezdek 1981).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, K.
    m : float, default=None
        Fuzzifier, above 1: at 1 memberships are hard, the larger the fuzzier. None takes that of a plan that names none: from 1.1 to 2, by
        the numbers of columns and rows (Schwämmle & Jensen 2010); ``m_`` has it.
    max_iter : int, default=300
        Updates of the centres at most.
    tol : float, default=1e-4
        Stops when the centres move less, together (Frobenius norm), than this part of a column's standard deviation; that is
        estimated from 10,000 rows.
    init : {"k-means++", "random"} or array of shape (n_clusters, n_features), default="k-means++"
        First centres. ``"k-means++"`` draws from 10,000 of the rows where there are more (100 a cluster at least), the same for every start:
        a cluster of a few rows in a million is better found by ``"random"`` with a large ``n_init``, or by an array.
    n_init : int, default=1
        Runs from different first centres; the one of the smallest objective counts.
    random_state : int, Generator, RandomState or None, default=None
        What first centres are drawn with.
    compute_indices : bool, default=False
        All validity indices, for one more pass over the rows; without it ``indices_`` has ``fuzzy_davies_bouldin`` alone.

    Attributes
    ----------
    cluster_centers_ : float64 array of shape (n_clusters, n_features)
        Centres, in the units of the rows.
    labels_ : int64 array of shape (n_samples,)
        The cluster of largest membership of every row of the fit.
    objective_ : float
        ``sum_j sum_k u_jk^m d_jk^2``, squared units of the rows.
    indices_ : dict of str to float
        Validity indices, by the names that ``result.json`` has.
    m_ : float
        Fuzzifier of the fit.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the rows of the fit had names.

    Examples
    --------
    >>> import numpy as np
    >>> from veilsum import FuzzyCMeans
    >>> rows = np.array([[0.0, 0.1], [0.1, 0.0], [5.0, 5.1], [5.1, 5.0]])
    >>> model = FuzzyCMeans(n_clusters=2, random_state=0).fit(rows)
    >>> model.predict_proba([[2.5, 2.5]]).shape
    (1, 2)
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        m=None,
        max_iter=300,
        tol=1e-4,
        init="k-means++",
        n_init=1,
        random_state=None,
        compute_indices=False,
    ):
        self.n_clusters = n_clusters
        self.m = m
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.compute_indices = compute_indices

    def _fuzzifier(self) -> float:
        return self.m_

    def _checked(self, n: int) -> None:
        if self.m is not None and (not isinstance(self.m, Real) or not 1 < self.m < float("inf")):
            raise ValueError(f"m must be a number above 1, and is {self.m!r}")
        self.m_ = _core.usual_fuzzifier(self.n_features_in_, n) if self.m is None else float(self.m)
        super()._checked(n)

    def _algorithm(self, tolerance: float) -> dict[str, Any]:
        return {"fcm": {"m": self.m_, "epsilon": tolerance, "max_rounds": int(self.max_iter)}}

    def predict_proba(self, X: Any) -> np.ndarray:
        """Memberships of every row in every cluster; each row adds up to 1.

        Returns
        -------
        memberships : float64 array of shape (n_samples, n_clusters)
        """
        return _core.memberships(self._again(X), self.cluster_centers_, self.m_)

    def fit_predict_proba(self, X: Any, y: Any = None) -> np.ndarray:
        """Fits, and returns the memberships of the same rows."""
        return self.fit(X).predict_proba(X)


class KMeans(_Centres):
    """k-means (Lloyd 1982), as a federation computes it.

    Parameters and attributes are those of :class:`FuzzyCMeans`, without ``m``; ``inertia_`` is ``objective_``, the sum of squared
    distances of rows to their nearest centre. An empty cluster keeps its centre.
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        max_iter=300,
        tol=1e-4,
        init="k-means++",
        n_init=1,
        random_state=None,
        compute_indices=False,
    ):
        self.n_clusters = n_clusters
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.compute_indices = compute_indices

    def _fuzzifier(self) -> float:
        return 1.0

    def _algorithm(self, tolerance: float) -> dict[str, Any]:
        return {"kmeans": {"epsilon": tolerance, "max_rounds": int(self.max_iter)}}

    @property
    def inertia_(self) -> float:
        return self.objective_

"""Federations: the real protocol, in this process or with letters that somebody else carries."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np

from . import _core, plan as _plan
from ._commands import options as _options, settings as _settings
from ._rows import handed, of_plan
from .errors import UsageError

__all__ = ["Coordinator", "Federation", "Frame", "Intermediary", "Result", "Site", "carry"]


class Frame(NamedTuple):
    """Bytes that one party has for another. They are TLS 1.3 between the keys of both: whoever carries them reads nothing.

    Attributes
    ----------
    to : str
        The party's name on the roster.
    data : bytes
        What its ``handle`` takes. Frames may arrive twice, and in any order.
    """

    to: str
    data: bytes


class Result(Mapping[str, Any]):
    """What a run came to: the document ``result.json`` as a mapping, with the numbers as arrays.

    Attributes
    ----------
    centres : float64 array of shape (K, d)
        Centres in original units, the columns in the order of ``columns``.
    columns : list of str
    indices : dict
        Validity indices by name.
    converged : bool
    n_total : int or None
        Rows of all sites together.
    """

    def __init__(self, document: Mapping[str, Any], sites: Mapping[str, Any] | None = None, policy: str = "", summary: str = ""):
        self._document = dict(document)
        self.sites = dict(sites or {})
        #: Under which policy simulated sites answered, in words.
        self.policy = policy
        self._summary = summary

    def __getitem__(self, name: str) -> Any:
        return self._document[name]

    def __iter__(self):
        return iter(self._document)

    def __len__(self) -> int:
        return len(self._document)

    @property
    def centres(self) -> np.ndarray:
        return np.asarray(self._document["centres"], dtype=np.float64)

    @property
    def columns(self) -> list[str]:
        return list(self._document["columns"])

    @property
    def indices(self) -> dict[str, Any]:
        return dict(self._document.get("indices", {}))

    @property
    def converged(self) -> bool:
        return bool(self._document["converged"])

    @property
    def n_total(self) -> int | None:
        return self._document.get("n_total")

    @property
    def report(self) -> dict[str, Any]:
        """The whole document."""
        return self._document

    def summary(self) -> str:
        """The same for people."""
        return self._summary or json.dumps(self._document, indent=1)

    def __repr__(self) -> str:
        k = len(self._document.get("centres", ()))
        return f"<Result: {k} centres of {', '.join(self.columns)}; {'converged' if self.converged else 'not converged'}>"


class Federation:
    """A roster with its plan.

    Parameters
    ----------
    roster, plan : path
        The signed documents; their signatures are verified.
    """

    def __init__(self, roster: Any = "roster.toml", plan: Any = "plan.toml") -> None:
        self._planned: Any = _core.Planned.load(os.fspath(roster), os.fspath(plan))
        self._options: list[str] | None = None
        self._names: list[str] | None = None

    @classmethod
    def of(
        cls,
        columns: Mapping[str, Sequence[float]],
        *,
        sites: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        **options: Any,
    ) -> "Federation":
        """A federation for simulations alone: no file, and keys that last for one run.

        Parameters
        ----------
        columns : mapping of str to (low, high)
            Columns of numbers, each with its public range, which is known before any row is read.
        sites : list of str, optional
            Names; ``site-1``, ``site-2``, ... where they are not said.
        categories : mapping of str to list of str, optional
            Columns of categories, each with all that may occur.
        **options
            Those of ``veilsum plan new``: ``k=3`` or ``k=(2, 6)``, ``method="fcm"``, ``m=2.0``, ``max_rounds=60``, ``seed=1``, ...
        """
        self = cls.__new__(cls)
        self._options = _options(_settings({"columns": columns, **({"categories": categories} if categories else {}), **options}))
        self._names = list(sites) if sites is not None else None
        self._planned = _core.Planned.made(self._options, self._names) if self._names is not None else None
        return self

    @classmethod
    def create(
        cls,
        folder: Any,
        columns: Mapping[str, Sequence[float]],
        *,
        sites: Sequence[str],
        name: str = "trial",
        coordinator: str = "coordinator",
        intermediary: str = "intermediary",
        **options: Any,
    ) -> "Federation":
        """Makes the files of a whole federation in ``folder``: a key for every party, roster and plan, agreed to by everybody.

        For trials on one machine, whose owner then has everybody's secrets. In earnest every party makes its key where it lives.
        """
        folder = os.fspath(folder)
        os.makedirs(folder, exist_ok=True)

        def at(file: str) -> str:
            return os.path.join(folder, file)

        _core.found(folder, name, (coordinator, "127.0.0.1:4433"), (intermediary, "127.0.0.1:4434"), list(sites))
        _plan.new(
            roster=at("roster.toml"), key=at(f"{coordinator}.key"), out=at("plan.toml"), columns=columns, **options
        )
        return cls(at("roster.toml"), at("plan.toml"))

    def _for(self, sites: int) -> Any:
        if self._planned is None:
            names = [f"site-{i + 1}" for i in range(sites)]
            self._planned, self._names = _core.Planned.made(self._options, names), names
        return self._planned

    @property
    def sites(self) -> list[str]:
        """Names of the roster's sites, in order; empty where they are not known yet."""
        return [] if self._planned is None else list(self._planned.sites)

    @property
    def plan(self) -> dict[str, Any]:
        """The plan's method part."""
        if self._planned is None:
            raise UsageError("how many sites there are is not known yet", "say sites=[...], or simulate first")
        return json.loads(self._planned.work)

    def simulate(
        self, rows: Sequence[Any] | Mapping[str, Any], *, policy: Any = None
    ) -> Result:
        """Runs the real protocol in this process: every role, on QUIC over loopback, with keys made for the run.

        Parameters
        ----------
        rows : list of tables or arrays, or mapping of site to one
            The rows of every site in original units, in the order of the roster. Columns of tables are found by name; an array has
            the plan's columns in their order.
        policy : path, optional
            A ``site.toml`` that holds for every site. Without one it is the strict default, relaxed by name as far as these rows need
            (``Result.policy``).

        Raises
        ------
        VeilsumError
            The failure of the role that ended the run.
        """
        if isinstance(rows, Mapping):
            names = self.sites or list(rows)
            if sorted(names) != sorted(rows):
                raise UsageError(f"rows are of {sorted(rows)}, the sites are {sorted(names)}", "give the rows of every site")
            if self._planned is None and self._options is not None:
                self._planned, self._names = _core.Planned.made(self._options, names), names
            rows = [rows[name] for name in names]
        planned = self._for(len(rows))
        noise = planned.noise
        arrays = [of_plan(one, planned.columns, planned.categorical, finite=not noise, noise=noise) for one in rows]
        told = json.loads(_core.simulate(planned, arrays, None if policy is None else os.fspath(policy)))
        return Result(told["result"], told["sites"], told["policy"], told["summary"])


class _Party:
    """A role without I/O. Whatever it has to say comes out of a call, and nothing happens between calls."""

    def __init__(self, party: Any) -> None:
        self._party = party

    @property
    def name(self) -> str:
        """Its name on the roster."""
        return self._party.name

    @property
    def done(self) -> bool:
        """Whether the role has ended. Frames that came with its end are still to be carried."""
        return self._party.done

    def start(self) -> list[Frame]:
        """Begins, and returns the first frames."""
        return [Frame(*frame) for frame in self._party.start()]

    def handle(self, frame: "Frame | bytes") -> list[Frame]:
        """Takes a frame that was carried here, and returns those that come of it. The interpreter's lock is released meanwhile."""
        data = frame.data if isinstance(frame, Frame) else frame
        return [Frame(*out) for out in self._party.handle(data)]

    def wait(self, seconds: float = 0.0) -> list[Frame]:
        """Lets at most so many seconds pass, until there is a frame. Whoever is missing is given up only so: call it now and then."""
        return [Frame(*out) for out in self._party.wait(float(seconds))]

    def _result(self) -> Any:
        told = self._party.result()
        return None if told is None else json.loads(told)

    def result(self) -> Any:
        """What the role came to; ``None`` while it runs.

        Raises
        ------
        VeilsumError
            Where the role failed.
        """
        return self._result()


class Site(_Party):
    """A site: the whole protocol, with its policy, its journal and its ledger. :meth:`run` stands by on the network; ``start``, ``handle``
    and ``wait`` are one run of ``plan`` without I/O, whose frames somebody else carries.

    Parameters
    ----------
    key : path
        Its secret key. Journal and ledger are beside it, unless ``state`` says where.
    roster : path
        The signed document. The site must have agreed to it (:func:`veilsum.roster.agree`).
    plan : path, optional
        The signed document that ``start`` and ``handle`` go by; :meth:`run` takes those that the coordinator proposes.
    rows : table, array, Spark DataFrame or path, optional
        Its rows, in original units. A Spark ``DataFrame`` stays in Spark: this process is the driver, and executors sum their rows. A pandas
        or Dask frame, an array, and what has an Arrow stream (polars, pyarrow, DuckDB, ADBC) is held in memory. A path is what ``veilsum run
        --data`` reads. Without any, the ``source`` that the policy names.
    policy : path, optional
        Its own policy; else ``site.toml`` beside the key, else the strict default.
    **options
        Others of ``veilsum run``.
    """

    def __init__(self, key: Any, roster: Any, plan: Any = None, rows: Any = None, **options: Any) -> None:
        of_file = rows is None or isinstance(rows, (str, os.PathLike))
        self._options = {"key": key, "roster": roster, **({"data": rows} if of_file else {}), **options}
        self._handed = None if of_file else handed(rows)
        self._by_hand = None if plan is None else _core.Party.site(_options({**self._options, "plan": plan}), self._handed)

    @property
    def _party(self) -> Any:
        if self._by_hand is None:
            raise UsageError("this site was made without a plan", "say plan=FILE for frames that you carry; run() stands by on the network")
        return self._by_hand

    def run(self, *, once: bool = False, **options: Any) -> None:
        """Stands by on the network as ``veilsum run`` does, for every run that the coordinator begins, until it is interrupted.

        Parameters
        ----------
        once : bool
            Return after one run.
        **options
            Others of ``veilsum run``: ``out`` is the folder for results.

        Raises
        ------
        VeilsumError
            Where the site cannot stand by; with ``once`` also where its run failed.
        """
        _core.stand_by(_options({**self._options, "once": once, **options}), self._handed)

    @property
    def read(self) -> dict[str, Any] | None:
        """What was read of the rows, for this site's operator alone; no value of a row is in it.

        ``rows``, ``used``, ``left_out`` and the like count rows, and ``columns`` what became of values, by column. ``text`` is what
        ``veilsum run`` prints. ``None`` of rows in Spark, and under noise before the run has ended.
        """
        told = self._party.read
        return None if told is None else {**json.loads(told[0]), "text": told[1]}

    def result(self) -> Result | None:
        """The result, as this site's own copy of the method has it."""
        told = self._result()
        if told is None:
            return None
        document = told["result"] or told["model"] or {}
        return Result(document, {self.name: {"answered": told["answered"]}})


class Coordinator(_Party):
    """The coordinator without I/O.

    Parameters
    ----------
    key, roster, plan : path
    out : path
        Folder for ``result.json`` and ``model.json``.
    **options
        Others of ``veilsum run``: ``phase_timeout``, ``grace``, ``on_loss``, ``loss_wait``, ``state``, ...
    """

    def __init__(self, key: Any, roster: Any, plan: Any, out: Any, **options: Any) -> None:
        super().__init__(
            _core.Party.coordinator(_options({"key": key, "roster": roster, "plan": plan, "out": out, **options}))
        )

    def result(self) -> Result | None:
        """The result of the run."""
        told = self._result()
        return None if told is None else Result(told)


class Intermediary(_Party):
    """The intermediary without I/O: it counts rows. Parameters are those of :class:`Coordinator`, without ``out``."""

    def __init__(self, key: Any, roster: Any, plan: Any, **options: Any) -> None:
        super().__init__(_core.Party.intermediary(_options({"key": key, "roster": roster, "plan": plan, **options})))

    def result(self) -> dict[str, Any] | None:
        """Over whom rows were counted, and how many they are."""
        return self._result()


def carry(parties: Sequence[_Party], seconds: float = 600.0) -> None:
    """Carries frames between parties in this process until all of them are done: the simplest carrier there is.

    Raises
    ------
    TimeoutError
        Where they are not done after so many seconds.
    """
    import time

    by_name = {party.name: party for party in parties}
    waiting = [frame for party in parties for frame in party.start()]
    end = time.monotonic() + seconds
    while not all(party.done for party in parties):
        if not waiting:
            waiting = [frame for party in parties if not party.done for frame in party.wait(0.02)]
            if time.monotonic() > end:
                raise TimeoutError(f"still running: {', '.join(p.name for p in parties if not p.done)}")
            continue
        frame = waiting.pop(0)
        if frame.to in by_name:
            waiting += by_name[frame.to].handle(frame)

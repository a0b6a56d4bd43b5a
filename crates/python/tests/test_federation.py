"""Whole federations: simulated, and carried by hand."""

import random

import numpy as np
import pytest

import veilsum
from veilsum import errors, ledger, plan, roster
from veilsum.federation import carry

COLUMNS = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
CENTRES = np.array([[0.2, 0.2], [0.8, 0.3], [0.5, 0.8]])


def sites(n=3, rows=150, seed=1):
    source = np.random.default_rng(seed)
    return [np.clip(CENTRES[source.integers(3, size=rows)] + source.normal(0, 0.05, (rows, 2)), 0, 1) for _ in range(n)]


def nearest(found):
    return np.array([found[np.argmin(((found - c) ** 2).sum(1))] for c in CENTRES])


def test_a_simulation_finds_what_a_fit_of_all_rows_finds():
    rows = sites()
    result = veilsum.Federation.of(COLUMNS, k=3, seed=3, exact=True, epsilon=1e-7, max_rounds=100).simulate(rows)
    assert result.converged and result.n_total == 450 and result.columns == ["x", "y"]
    pooled = veilsum.FuzzyCMeans(3, init=result.centres, tol=1e-9).fit(np.concatenate(rows))
    assert np.abs(pooled.cluster_centers_ - result.centres).max() < 1e-4
    assert "fuzzy_davies_bouldin" in result.indices and "centre" in result.summary()
    assert set(result.sites) == {"site-1", "site-2", "site-3"}


def test_a_simulation_takes_tables_by_name_and_categories():
    rows = sites(4)
    wards = np.array(["north", "south"])
    tables = {
        name: {"ward": wards[(own[:, 0] > 0.5).astype(int)], "y": own[:, 1], "x": own[:, 0], "unused": own[:, 0]}
        for name, own in zip("abcd", rows)
    }
    federation = veilsum.Federation.of(COLUMNS, categories={"ward": ["north", "south"]}, sites=list("abcd"), k=3, seed=3, exact=True)
    result = federation.simulate(tables)
    assert federation.sites == list("abcd") and result["k"] == 3


def test_a_simulation_counts_missing_values_as_files_do():
    rows = sites()
    rows[0][:40, 0] = np.nan
    federation = veilsum.Federation.of(COLUMNS, method="describe", rho=50, expected_rows=450)
    described = federation.simulate(rows)["description"]["numbers"]
    assert abs(described[0]["missing"] - 40) < 15 and described[1]["missing"] is None


def test_what_is_wrong_has_code_culprit_and_next_step(tmp_path):
    with pytest.raises(errors.UsageError) as wrong:
        veilsum.Federation.of(COLUMNS, k=3, m=0.5, exact=True).simulate(sites())
    assert wrong.value.culprit == "caller" and wrong.value.code == "usage"
    with pytest.raises(errors.InputError) as outside:
        veilsum.Federation.of(COLUMNS, k=3, exact=True).simulate([own * 9 for own in sites()])
    assert "box" in outside.value.message and outside.value.next_step
    with pytest.raises(errors.InputError):
        veilsum.Federation(tmp_path / "roster.toml", tmp_path / "plan.toml")
    with pytest.raises(errors.UsageError, match="sites"):
        veilsum.Federation.of(COLUMNS, sites=["a", "b", "c"], k=3, exact=True).simulate(sites(4))
    assert issubclass(errors.InputError, ValueError)


OPTIONS = dict(k=3, seed=3, max_rows=200, min_total_rows=400, max_rounds=30, epsilon=1e-4, exact=True)


def parties(folder, rows, **of_site):
    names = [f"site-{place}" for place in range(len(rows))]
    federation = veilsum.Federation.create(folder, COLUMNS, sites=names, **OPTIONS)
    documents = dict(roster=folder / "roster.toml", plan=folder / "plan.toml")
    assert federation.sites == names
    read = plan.check(**documents)["fingerprint"]
    for name in names:
        assert plan.agree(key=folder / f"{name}.key", fingerprint=read, **documents)["agreed"]
    coordinator = veilsum.Coordinator(folder / "coordinator.key", out=folder / "out", **documents, phase_timeout=20)
    intermediary = veilsum.Intermediary(folder / "intermediary.key", **documents, phase_timeout=20)
    each = [
        veilsum.Site(folder / f"{name}.key", rows=own, **documents, **of_site) for name, own in zip(names, rows)
    ]
    return coordinator, intermediary, each


def test_a_whole_federation_by_hand(tmp_path):
    rows = sites()
    coordinator, intermediary, each = parties(tmp_path, rows)
    carry([coordinator, intermediary, *each])
    result = coordinator.result()
    assert result.converged and result.n_total == 450
    assert intermediary.result()["n_total"] == 450
    for site in each:
        assert np.abs(site.result().centres - result.centres).max() < 1e-12
    assert np.abs(nearest(result.centres) - CENTRES).max() < 0.03
    # The ledger of a site holds what left it, as on the command line.
    assert veilsum.check(key=tmp_path / "site-0.key")["account"]["answers"]
    assert ledger.verify(tmp_path / "site-0.key.state" / "ledger.jsonl")
    assert veilsum.FuzzyCMeans(3, init=result.centres, tol=1e-9).fit(np.concatenate(rows)).n_iter_ < 30


def test_sites_with_rows_from_everywhere(tmp_path):
    rows = sites()
    kept = [tmp_path / "rows.csv", rows[1], {"y": rows[2][:, 1], "x": rows[2][:, 0]}]
    kept[0].write_text("y,x\n" + "".join(f"{y!r},{x!r}\n" for x, y in rows[0].tolist()))
    try:
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"x": rows[1][:, 0], "y": rows[1][:, 1]}), tmp_path / "rows.parquet")
        kept[1] = tmp_path / "rows.parquet"
    except ImportError:
        print("SKIPPED: pyarrow is not installed, so no site reads Parquet")
    coordinator, intermediary, each = parties(tmp_path, kept)
    for site, own in zip(each, rows):
        # What was read, from wherever: for the site's operator alone.
        assert (site.read["rows"], site.read["used"], site.read["left_out"]) == (len(own), len(own), [])
        assert [column["missing"] for column in site.read["columns"]] == [0, 0]
        assert site.read["text"].startswith(f"{len(own)} rows in 1 file; all are used")
    assert not hasattr(intermediary, "read")
    carry([coordinator, intermediary, *each])
    memory, _, others = parties(tmp_path / "again", rows)
    carry([memory, _, *others])
    assert np.abs(coordinator.result().centres - memory.result().centres).max() == 0


def test_frames_may_come_twice_and_in_any_order(tmp_path):
    seed = 11
    print("seed", seed)
    dice = random.Random(seed)
    coordinator, intermediary, each = parties(tmp_path, sites())
    everybody = {party.name: party for party in [coordinator, intermediary, *each]}
    waiting = [frame for party in everybody.values() for frame in party.start()]
    for _ in range(200_000):
        if all(party.done for party in everybody.values()):
            break
        if not waiting:
            waiting = [frame for party in everybody.values() for frame in party.wait(0.01)]
            continue
        frame = waiting.pop(dice.randrange(len(waiting)))
        if dice.random() < 0.2:
            waiting.append(frame)
        waiting += everybody[frame.to].handle(frame.data)
    assert coordinator.result().converged
    with pytest.raises(errors.InputError, match="no letter"):
        coordinator.handle(b"not a letter")
    with pytest.raises(errors.InputError, match="another party"):
        each[0].handle(frame.data if frame.to != each[0].name else coordinator_letter(frame))


def coordinator_letter(frame):
    return frame.data[:4] + frame.data[36:68] + frame.data[4:36] + frame.data[68:]


def test_a_site_answers_nothing_without_its_policy_and_its_roster(tmp_path):
    strict = tmp_path / "strict.toml"
    assert veilsum.check()["policy"]["keys"]["exact"] == "by-agreement"
    rows = sites()
    names = ["site-0", "site-1", "site-2"]
    veilsum.Federation.create(tmp_path, COLUMNS, sites=names, **OPTIONS)
    veilsum.Federation.create(tmp_path / "elsewhere", COLUMNS, sites=["stranger", *names], **OPTIONS)
    documents = dict(roster=tmp_path / "roster.toml", plan=tmp_path / "plan.toml")
    with pytest.raises(errors.InputError):
        veilsum.Site(tmp_path / "elsewhere" / "stranger.key", rows=rows[0], **documents)
    with pytest.raises(errors.VeilsumError):
        veilsum.Site(tmp_path / "site-0.key", rows=np.full((5, 2), 7.0), **documents)
    with pytest.raises(errors.VeilsumError, match="policy|nonsense|format"):
        strict.write_text("nonsense = 1\n")
        veilsum.Site(tmp_path / "site-0.key", rows=rows[0], policy=strict, **documents)
    # A policy that has another method on its list: the site refuses, and says that it is its own policy.
    strict.write_text("methods = [\"kmeans\"]\n")
    try:
        parties_ = [
            veilsum.Coordinator(tmp_path / "coordinator.key", out=tmp_path / "out", **documents, phase_timeout=5, on_loss="stop"),
            veilsum.Intermediary(tmp_path / "intermediary.key", **documents, phase_timeout=5, on_loss="stop"),
            *(
                veilsum.Site(tmp_path / f"{n}.key", rows=own, policy=strict, **documents)
                for n, own in zip(names, rows)
            ),
        ]
    except errors.InputError as refused:
        pytest.fail(f"the policy file of this test is not one: {refused}")
    # No site dials anybody, so the aggregators wait for them.
    with pytest.raises(TimeoutError, match="coordinator, intermediary"):
        carry(parties_, 10)
    with pytest.raises(errors.PolicyError) as own:
        parties_[2].result()
    assert own.value.culprit == "own policy" and own.value.next_step


def test_documents(tmp_path):
    veilsum.Federation.create(tmp_path, COLUMNS, sites=["a", "b", "c"], **OPTIONS)
    documents = dict(roster=tmp_path / "roster.toml", plan=tmp_path / "plan.toml")
    assert plan.check(documents["plan"], documents["roster"])["cohort"]["max_rows_per_site"] == 200
    assert "fingerprint" in plan.check(documents["plan"], documents["roster"])
    assert roster.verify(documents["roster"])["sites"] == 3
    assert roster.verify(documents["roster"])["name"] == "trial"
    np.savetxt(tmp_path / "rows.csv", sites()[0], delimiter=",", header="x,y", comments="")
    # Nobody has agreed to it, and then somebody has.
    with pytest.raises(errors.PolicyError, match="veilsum agree"):
        veilsum.check(key=tmp_path / "a.key", data=tmp_path / "rows.csv", **documents)
    plan.agree(key=tmp_path / "a.key", fingerprint=plan.check(**documents)["fingerprint"], **documents)
    assert veilsum.check(key=tmp_path / "a.key", data=tmp_path / "rows.csv", **documents)["answer"]
    assert plan.privacy(**documents)["report"].startswith("# Privacy report")

//! Reads what was released from files: views with totals, a run's openings, signed ledgers.
//!
//! A **view** is a file with one [`Told`] a line as JSON: question, box, cohort, deviations and, where they are known, the totals.
//! **Openings** (`openings.bin` beside a result; `SESSION.transcript` in a site's state folder, while its run lasts) hold what the
//! coordinator signed, so that question, cohort and total come out of them, recomputed. A **ledger** holds digests: of a question only its kind
//! and where its centres lay, to millionths, and of a cohort a digest of its keys. With the plan that an entry names, questions about
//! centres and plain counts are rebuilt; brackets, cells and standardised questions cannot be, and are counted as left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use veilsum_cluster::{
    Algorithm, Batch, Centres, Query,
    query::{LocalMeans, LocalSteps, Moments, RoundHalf},
};
use veilsum_node::{
    documents::Federation,
    question::Question,
    release::cohort_digest,
    store::{Transcript, ledger, openings_from_bytes},
};
use veilsum_proto::{
    evidence::Documents,
    ledger::{Answer, Entry},
    message::{Disclosure, Kind, kind_of},
    roster::Roster,
    suite::Hash,
};

use super::Told;

/// What files say.
#[derive(Default)]
pub struct Released {
    /// The totals.
    pub told: Vec<Told>,
    /// Answers whose question could not be rebuilt, by kind: the prediction knows nothing of them.
    pub left_out: BTreeMap<String, usize>,
}

impl Released {
    /// Adds the totals of a view.
    ///
    /// # Errors
    /// Where a line is none.
    pub fn view(&mut self, path: &Path) -> Result<()> {
        let text = std::fs::read_to_string(path).with_context(|| format!("the view {}", path.display()))?;
        for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let told: Told =
                serde_json::from_str(line).with_context(|| format!("line {} of the view {}", i + 1, path.display()))?;
            let fits = told.values.as_ref().is_none_or(|v| v.len() == told.deviations.len());
            let sound = fits && !told.cohort.is_empty() && told.deviations.iter().all(|d| d.is_finite() && *d > 0.0);
            ensure!(sound, "line {} of {}: no total has this form; write the view again", i + 1, path.display());
            self.told.push(told);
        }
        Ok(())
    }

    /// Adds the totals of a run's openings: of `openings.bin`, whole, or of a `.transcript`, whose last entry may be half written.
    ///
    /// # Errors
    /// Where the file is damaged or empty, where it is of another federation, or an opening is false.
    pub fn openings(&mut self, path: &Path, federations: &[Federation]) -> Result<()> {
        let said = if path.extension().is_some_and(|e| e == "transcript") {
            Transcript::look(path).map_err(|f| anyhow!("{f}"))?
        } else {
            let bytes = std::fs::read(path).with_context(|| format!("the openings {}", path.display()))?;
            openings_from_bytes(&bytes)
                .with_context(|| format!("{} is damaged: take the one of another party of its run", path.display()))?
        };
        ensure!(
            !said.is_empty(),
            "{} is empty: when a run is over, its openings stand in openings.bin beside its result",
            path.display()
        );
        let mut asked = None;
        for said in said {
            if kind_of(&said.frame) == Some(Kind::Ask) {
                asked = Some(said);
                continue;
            }
            let ask = asked.as_ref().with_context(|| format!("{} begins in the middle of a round", path.display()))?;
            let opened = federations.iter().find_map(|f| {
                let documents = Documents { roster: &f.roster, terms: &f.terms };
                Some((f, documents.opened(&ask.directory, &ask.frame, &said.frame).ok()?))
            });
            let (f, opened) = opened
                .with_context(|| format!("{} is of no roster and plan given, or it was changed", path.display()))?;
            let opened = opened.map_err(|blame| anyhow!("{}: the coordinator {}", path.display(), blame.what))?;
            let question = Question::from_bytes(&opened.asked.query)?;
            let (domain, form) = (f.work.domain()?, f.form().map_err(|e| anyhow!("{e}"))?);
            let values = question.layout(&domain, &form)?.decode(&opened.values, opened.cohort.len(), None)?.values;
            let mut cohort = opened.cohort.clone();
            if let (Question::Drawn { number, .. }, Some(sampling)) = (&question, &f.work.sampling) {
                let drawn = sampling.drawn(*number, f.roster.sites.len());
                cohort.retain(|site| drawn[usize::from(*site)]);
            }
            let names = cohort.iter().map(|site| f.roster.sites[usize::from(*site)].name.clone()).collect();
            self.told.push(Told::new(question, domain, &form, names, Some(values))?);
        }
        Ok(())
    }

    /// Adds what signed ledgers say was answered. An answer counts as released, whether its total was opened or not.
    ///
    /// # Errors
    /// Where a ledger is of no site of these rosters, or is damaged.
    pub fn ledgers(&mut self, paths: &[PathBuf], federations: &[Federation]) -> Result<()> {
        let mut answers: BTreeMap<[u8; 32], (Entry, Hash)> = BTreeMap::new();
        for path in paths {
            let keys = federations.iter().flat_map(|f| &f.roster.sites).map(|member| member.key);
            let mut last = None;
            let entries =
                keys.map(|key| ledger::check(path, key, None)).find_map(|read| read.map_err(|e| last = Some(e)).ok());
            let entries = entries.with_context(|| match last {
                Some(e) => format!("the ledger of no site of the rosters given, or not whole: {e}"),
                None => "give --roster and --plan of the runs in the ledgers".to_owned(),
            })?;
            for entry in &entries.entries {
                let Some(answer) = &entry.answer else { continue };
                // Shares leave for the total of those who are left.
                let after = |e: &&Entry| {
                    (e.session, e.run, e.slot) == (entry.session, entry.run, entry.slot)
                        && e.index > entry.index
                        && e.discloses != Disclosure::MaskedWords
                };
                let opened = entries.entries.iter().rev().filter(after).find_map(|e| e.cohort);
                let cohort = opened.or(entry.cohort).context("an answer without its cohort")?;
                let slot = entry.slot.unwrap_or_default();
                let slot = [&slot.0.to_le_bytes()[..], &slot.1.to_le_bytes()].concat();
                let name = veilsum_proto::suite::hash(
                    "audited answer",
                    &[&entry.session.0, &entry.run.0, &slot, &answer.question.0, &cohort.0],
                );
                answers.insert(name.0, (entry.clone(), cohort));
            }
        }
        let mut cohorts = Cohorts::default();
        for (entry, cohort) in answers.into_values() {
            let Some(answer) = &entry.answer else { continue };
            let told = federations.iter().find(|f| f.terms.hash() == entry.plan).and_then(|f| {
                let mut names = cohorts.named(&f.roster, &cohort)?;
                if let Some(drawn) = answer.drawn {
                    names = names.intersection(&cohorts.named(&f.roster, &drawn)?).cloned().collect();
                }
                let question = rebuilt(answer, f)?;
                Told::new(question, f.work.domain().ok()?, &f.form().ok()?, names, None).ok()
            });
            match told {
                Some(told) => self.told.push(told),
                None => *self.left_out.entry(answer.kind.clone()).or_default() += 1,
            }
        }
        Ok(())
    }
}

/// Cohorts by their digests, as far as they were tried.
#[derive(Default)]
struct Cohorts(BTreeMap<Hash, Option<BTreeSet<String>>>);

/// For rosters of up to this many sites every subset is tried; for larger ones, all sites but a few.
const EVERY_SUBSET: usize = 20;

impl Cohorts {
    /// The names of the sites with this digest.
    fn named(&mut self, roster: &Roster, digest: &Hash) -> Option<BTreeSet<String>> {
        if let Some(known) = self.0.get(digest) {
            return known.clone();
        }
        let n = roster.sites.len();
        let without = |out: &[usize]| (0..n as u16).filter(|s| !out.contains(&usize::from(*s))).collect::<Vec<u16>>();
        let few = std::iter::once(Vec::new())
            .chain((0..n).map(|i| vec![i]))
            .chain((0..n).flat_map(|i| (0..i).map(move |j| vec![i, j])));
        let few = few.map(|out| without(&out));
        let all = 0..if n <= EVERY_SUBSET { 1u32 << n } else { 0 };
        let all = all.map(|bits| (0..n as u16).filter(|s| bits >> s & 1 == 1).collect::<Vec<u16>>());
        let found = few.chain(all).find(|cohort| cohort_digest(roster, cohort) == *digest);
        let names = found.map(|c| c.iter().map(|s| roster.sites[usize::from(*s)].name.clone()).collect());
        self.0.insert(*digest, names.clone());
        names
    }
}

/// The question behind an answer, as far as the entry and its plan tell.
fn rebuilt(answer: &Answer, federation: &Federation) -> Option<Question> {
    let algorithm = &federation.work.recipe.algorithm;
    let domain = federation.work.domain().ok()?;
    if answer.kind == "count_rows" {
        return Some(Question::CountRows);
    }
    let one = |query| Some(Question::Cluster(Batch::from(query)));
    if answer.kind == "moments" {
        return one(Query::Moments(Moments { around: None }));
    }
    // Centres in another box stand in transformed units.
    let ends = |bits: &[u64]| bits.iter().map(|b| f64::from_bits(*b)).collect::<Vec<f64>>();
    let (lower, upper) = (ends(&answer.frame.lower), ends(&answer.frame.upper));
    let near = |a: &[f64], b: &[f64]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + b.abs()))
    };
    let public = near(&lower, domain.lower()) && near(&upper, domain.upper());
    if !public || answer.centres.is_empty() {
        return None;
    }
    let mut queries = Vec::new();
    for places in &answer.centres {
        let place = |(j, at): (usize, &i32)| {
            f64::midpoint(lower[j], upper[j]) + (upper[j] - lower[j]) / 2.0 * f64::from(*at) / 1e6
        };
        let rows: Vec<Vec<f64>> =
            veilsum_proto::ledger::points(places).map(|p| p.iter().enumerate().map(place).collect()).collect();
        let centres = domain.centres_to_box(&Centres::from_rows(&rows).ok()?).ok()?;
        let m = algorithm.fuzzifier();
        queries.push(match (answer.kind.as_str(), algorithm) {
            ("fuzzy_sums", _) => Query::fuzzy_sums(centres, m?),
            ("fuzzy_validation", _) => Query::fuzzy_validation(centres, m?),
            ("local_means", Algorithm::Kmeans { .. }) => {
                let local = LocalSteps::ONE;
                Query::LocalMeans(LocalMeans { centres, local, min_rows: 1, nearest: false, part: RoundHalf::Both })
            }
            // Of groups after rounds of a site's own only their sums over all groups are read, which are the same for all of these.
            ("local_means", _) => {
                let local = LocalSteps { most: 2, epsilon: 0.0 };
                Query::LocalMeans(LocalMeans { centres, local, min_rows: 1, nearest: false, part: RoundHalf::Both })
            }
            _ => return None,
        });
    }
    Some(Question::Cluster(Batch { transform: None, queries }))
}

//! Table 1 of FFCF (Urío-Larrea): feature vectors of three sites, merged and clustered once; on the authors' data.
//!
//! `plain` is the authors' rule at a server that sees every vector (built from 67 % of each site's rows, as in the
//! experiment); `masked` adds mass-conserving vectors of all rows into shared anchors, so that only totals are seen.

use std::collections::BTreeSet;

use veilsum_cluster::offline::features::Rules;
use veilsum_cluster::query::FeatureParams;
use veilsum_cluster::{Algorithm, Centres, Recipe, Rows};

use super::data::Folder;
use super::harness::{NO_RULE, each, from_totals, masked, prepared};
use super::legacy::RandomState;
use super::{ExperimentError, Line, Report, Sample, Settings, server};
use crate::{spread::Spread, synthetic::ffcm};

const K: usize = 4;
/// File, sizes, WSSE and OSSE as printed, and as an independent implementation of the authors' code finds them.
const ROWS: [(&str, &str, [&str; 2], [f64; 2]); 4] = [
    ("ffcf/C3C4Lin1.csv", "100-1000-100", ["0.62", "17.05"], [0.620527, 17.046708]),
    ("ffcf/C3C4Lin2.csv", "100-1000-1000", ["0.61", "17.11"], [0.616059, 17.110247]),
    ("ffcf/C3C4Lin3.csv", "1000-100-100", ["0.62", "17.09"], [0.621793, 17.096831]),
    ("ffcf/C3C4Lin.csv", "1000-1000-1000", ["0.61", "17.10"], [0.614301, 17.105419]),
];
/// Feature vectors that a site holds at least, and the similarity from which two are merged: the paper's, and others.
const RULES: [(u32, f64); 4] = [(5, 1.0), (5, 0.8), (5, 1.2), (20, 1.0)];

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let folder = Folder::new(settings, "ffcf/C3C4Lin.csv and three more")?;
    let mut report = Report::new("ffcf", "FFCF: feature vectors at a plain server and on shared anchors");
    report.note(NO_RULE);
    report
        .note("plain: the authors' rule, on two thirds of the rows, as they ran it; masked: mass conserved, all rows");
    let rows = if settings.quick { &ROWS[..1] } else { &ROWS[..] };
    let found = each(rows, |row| one(&folder, row.0))?;
    for ((_, sizes, printed, again), found) in rows.iter().zip(&found) {
        for (at, (item, what, digits)) in [(71, "WSSE", 4), (72, "OSSE", 3)].into_iter().enumerate() {
            let (authors, plain, hidden) = (found.author[at], found.plain[at], found.masked[at]);
            let line = Line::new(*sizes, what, digits).plain(authors).masked(hidden);
            let line = line.printed(item, printed[at], 0.06, "the authors' rule deletes the lightest vectors");
            let why = "the authors' rule: half a unit of the second digit, which the paper cuts off in three places";
            report.lines.push(line.near(authors, again[at], 0.005, why));
            let line = Line::new(*sizes, format!("{what}, mass conserved, against a plain server"), digits);
            let line = line.plain(plain).masked(hidden);
            let allowance = if at == 0 { 0.004 } else { 0.1 };
            report.lines.push(line.near(hidden, plain, allowance, "anchors against all vectors"));
        }
        let line = Line::new(*sizes, "sums in the whole run", 0).drawn(74).masked(found.questions);
        report.lines.push(line.at_most(found.questions, 7.0, "same: one sum of vectors; seeding and validity beside"));
    }
    let line = Line::new("100-1000-100", "WSSE, largest difference to the paper's rule", 4).drawn(67);
    let ways = each(&RULES, |(min, tau)| masked_ffcf(&folder, ROWS[0].0, *min, *tau))?;
    let base = ways[0].0[0];
    let off: Sample = ways.iter().map(|(found, _)| (found[0] - base).abs()).collect();
    let most = off.max();
    let why = "same: 5 vectors at least and similarity 1 as printed; 20, 0.8 and 1.2 end alike";
    report.lines.push(line.masked(most).at_most(most, 0.01, why));
    let sites = folder.by_site(ROWS[3].0)?;
    let kinds = sites.iter().map(|(_, labels)| labels.iter().collect::<BTreeSet<_>>().len());
    let two = kinds.filter(|kinds| *kinds == 2).count();
    let line = Line::new("1000-1000-1000", "sites with two clusters of four", 0).drawn(73).plain(two as f64);
    report.lines.push(line.holds(two == 3, "same: the authors' file"));
    Ok(report)
}

/// WSSE and OSSE.
type Scores = [f64; 2];

struct Found {
    author: Scores,
    plain: Scores,
    masked: Scores,
    questions: f64,
}

fn scores(rows: &Rows, centres: &Centres) -> Result<Scores, ExperimentError> {
    let spread = Spread::new(rows, centres)?;
    Ok([spread.within, spread.outside])
}

fn one(folder: &Folder, file: &str) -> Result<Found, ExperimentError> {
    let rows: Vec<Rows> = folder.by_site(file)?.into_iter().map(|(rows, _)| rows).collect();
    let all = Rows::pooled(&rows)?;
    let training = rows.iter().map(training).collect::<Result<Vec<_>, _>>()?;
    let authors = FeatureParams { min: 5, max: 100, tau: 1.0, m: 2.0 };
    let features = FeatureParams { max: 30, ..authors };
    let (masked, questions) = masked_ffcf(folder, file, 5, 1.0)?;
    Ok(Found {
        author: scores(&all, &server::ffcf(&training, K, authors, Rules::Authors)?)?,
        plain: scores(&all, &server::ffcf(&rows, K, features, Rules::Conserving)?)?,
        masked,
        questions,
    })
}

fn masked_ffcf(folder: &Folder, file: &str, min: u32, tau: f64) -> Result<(Scores, f64), ExperimentError> {
    let rows: Vec<Rows> = folder.by_site(file)?.into_iter().map(|(rows, _)| rows).collect();
    let domain = ffcm::wide_domain();
    let features = FeatureParams { min, max: 30, tau, m: 2.0 };
    let ffcf = Algorithm::Ffcf { m: 2.0, features, anchors: 0, merge: false };
    let recipe = Recipe::plain(ffcf, K as u32, from_totals(1));
    let hidden = masked(&recipe, &domain, &prepared(&rows, &domain)?, None)?;
    Ok((scores(&Rows::pooled(&rows)?, &hidden.centres)?, f64::from(hidden.questions)))
}

/// The training part of scikit-learn's `train_test_split(rows, test_size = 0.33, random_state = 0)`.
fn training(rows: &Rows) -> Result<Rows, ExperimentError> {
    let test = (rows.len() as f64 * 0.33).ceil() as usize;
    let order = RandomState::new(0).permutation(rows.len());
    let values = order[test..].iter().flat_map(|i| rows.row(*i)).copied().collect();
    Ok(Rows::new(values, rows.columns())?)
}

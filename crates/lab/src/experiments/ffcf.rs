//! Table 1 of FFCF (Urío-Larrea): feature vectors of three sites, merged and clustered once; on the authors' data.
//!
//! `plain` is the authors' rule at a server that sees every vector (built from 67 % of each site's rows, as in the
//! experiment); `masked` adds mass-conserving vectors of all rows into shared anchors, so that only totals are seen.

use veilsum_charts::{Chart, Plot};
use veilsum_cluster::metrics::Spread;
use veilsum_cluster::query::FeatureParams;
use veilsum_cluster::synthetic::ffcm;
use veilsum_cluster::{Algorithm, Recipe, Rows};

use super::data::Folder;
use super::harness::{NO_RULE, each, from_totals, masked, prepared};
use super::legacy::RandomState;
use super::{ExperimentError, Line, Report, Settings, server};

const K: usize = 4;
/// File, sizes, and WSSE and OSSE as an independent implementation of the authors' code finds them (the paper prints two
/// digits, cut off rather than rounded in three places).
const ROWS: [(&str, &str, &str, f64, f64); 4] = [
    ("ffcf/C3C4Lin1.csv", "100-1000-100", "0.62 / 17.05", 0.620527, 17.046708),
    ("ffcf/C3C4Lin2.csv", "100-1000-1000", "0.61 / 17.11", 0.616059, 17.110247),
    ("ffcf/C3C4Lin3.csv", "1000-100-100", "0.62 / 17.09", 0.621793, 17.096831),
    ("ffcf/C3C4Lin.csv", "1000-1000-1000", "0.61 / 17.10", 0.614301, 17.105419),
];

pub(super) fn run(settings: &Settings) -> Result<Report, ExperimentError> {
    let folder = Folder::new(settings, "ffcf/C3C4Lin.csv and three more")?;
    let mut report = Report::new("ffcf", "FFCF: feature vectors at a plain server and on shared anchors");
    report.note(NO_RULE);
    let rows = if settings.quick { &ROWS[..1] } else { &ROWS[..] };
    let found = each(rows, |row| one(&folder, row.0))?;
    let (mut plain, mut hidden) = (Vec::new(), Vec::new());
    for ((_, sizes, paper, within, outside), found) in rows.iter().zip(&found) {
        plain.push(found.author.within);
        hidden.push(found.masked.within);
        let line = Line::new(*sizes, "WSSE, authors' rule", 4).paper(paper).plain(found.author.within);
        report.lines.push(line.near(found.author.within, *within, 0.005, "half a unit of the second printed digit"));
        let line = Line::new(*sizes, "OSSE, authors' rule", 4).paper(paper).plain(found.author.outside);
        report.lines.push(line.near(found.author.outside, *outside, 0.005, "half a unit of the second printed digit"));
        let line = Line::new(*sizes, "WSSE, mass conserved", 4).plain(found.plain.within).masked(found.masked.within);
        report.lines.push(line.near(
            found.masked.within,
            found.plain.within,
            0.001,
            "anchors against the plain server",
        ));
        let line = Line::new(*sizes, "OSSE, mass conserved", 3).plain(found.plain.outside).masked(found.masked.outside);
        report.lines.push(line);
        let line = Line::new(*sizes, "sums in the whole run", 0).masked(found.questions);
        report.lines.push(line.at_most(found.questions, 7.0, "seeding, one sum of vectors, validity"));
    }
    let sizes = rows.iter().map(|row| row.1.to_owned()).collect();
    let plot = Plot::bars(sizes, vec![("plain, authors' rule".into(), plain), ("masked".into(), hidden)]);
    report.chart = Some(Chart::new("FFCF: mean distance to the nearest centre", "rows a site", "WSSE", plot));
    Ok(report)
}

struct Found {
    author: Spread,
    plain: Spread,
    masked: Spread,
    questions: f64,
}

fn one(folder: &Folder, file: &str) -> Result<Found, ExperimentError> {
    let rows: Vec<Rows> = folder.by_site(file)?.into_iter().map(|(rows, _)| rows).collect();
    let all = Rows::pooled(&rows)?;
    let training = rows.iter().map(training).collect::<Result<Vec<_>, _>>()?;
    let domain = ffcm::wide_domain();
    let features = FeatureParams { min: 5, max: 30, tau: 1.0, m: 2.0 };
    let ffcf = Algorithm::Ffcf { m: 2.0, features, anchors: 0, merge: false };
    let recipe = Recipe::plain(ffcf, K as u32, from_totals(1));
    let hidden = masked(&recipe, &domain, &prepared(&rows, &domain)?, None)?;
    Ok(Found {
        author: Spread::new(&all, &server::ffcf_authors(&training, K)?)?,
        plain: Spread::new(&all, &server::ffcf_conserving(&rows, K, features)?)?,
        masked: Spread::new(&all, &hidden.centres)?,
        questions: f64::from(hidden.questions),
    })
}

/// The training part of scikit-learn's `train_test_split(rows, test_size = 0.33, random_state = 0)`.
fn training(rows: &Rows) -> Result<Rows, ExperimentError> {
    let test = (rows.len() as f64 * 0.33).ceil() as usize;
    let order = RandomState::new(0).permutation(rows.len());
    let values = order[test..].iter().flat_map(|i| rows.row(*i)).copied().collect();
    Ok(Rows::new(values, rows.columns())?)
}

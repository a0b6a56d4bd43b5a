//! The values that the options of a method take, and how each is read from its text.

use clap::ValueEnum;
use veilsum_cluster::{
    Clusters,
    algorithm::{ALGORITHMS, About},
    method::{Pick, Winsor},
};

use veilsum_node::{
    error::{Code, Failure},
    plan::Column,
};

/// Methods that exist here for comparison only: their server sees every site's centres.
const COMPARISON_ONLY: [&str; 4] = ["k-fed", "kfed", "fkm-plain", "ffcf-plain"];

pub(super) fn parse_method(text: &str) -> Result<&'static About, String> {
    if COMPARISON_ONLY.contains(&text) {
        return Err(format!(
            "{text} is here for comparison in tables only and no plan can name it: its server sees every site's centres"
        ));
    }
    let named = |about: &&About| about.name == text || about.aliases.contains(&text);
    ALGORITHMS.iter().find(named).ok_or_else(|| format!("the methods are {}", names().join(", ")))
}

/// All methods, each with its other names.
fn names() -> Vec<String> {
    let one = |about: &About| match about.aliases {
        [] => about.name.to_owned(),
        others => format!("{} ({})", about.name, others.join(", ")),
    };
    ALGORITHMS.iter().map(one).collect()
}

/// Kept for comparison with its paper.
const OF_PAPER: &str = "ffcm-avg1";

/// The names of all methods, and without the one that is kept for comparison: a line of the short help has room for no more.
pub(super) fn method_help(all: bool) -> String {
    let names = ALGORITHMS.iter().map(|about| about.name).filter(|name| all || *name != OF_PAPER);
    names.collect::<Vec<&str>>().join("|")
}

/// Where first centres come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Init {
    /// Uniform in the public box (the papers')
    Uniform,
    /// From counts of every column and sums around candidates
    Totals,
}

/// How columns are standardised over the cohort.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Standardise {
    /// Not at all
    None,
    /// Mean 0, standard deviation 1
    Standard,
    /// Median 0, interquartile range 1
    Robust,
}

/// What distances between rows and centres are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Metric {
    /// Of the columns as they are scaled or standardised
    Euclidean,
    /// Of the columns whitened by their covariance over the cohort
    Mahalanobis,
    /// Of directions: every row is divided by its length at its site
    Cosine,
}

/// Which validity totals are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum IndexSet {
    /// Fuzzy Davies-Bouldin and the objective
    Basic,
    /// All but those that need sums of coordinates
    Scalars,
    /// All
    All,
}

/// Who opens the validity totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum JudgeName {
    /// The coordinator
    Coordinator,
    /// The intermediary, which learns no centre
    Intermediary,
}

/// An index by the name that plans use.
pub(super) fn parse_pick(text: &str) -> Result<Pick, String> {
    if text == "silhouette" {
        return Err("the silhouette needs the distances between all pairs of rows, which no total gives: simplified-silhouette takes \
                    the distances to the centres in their place, and silhouette-squared is exact for squared distances"
            .into());
    }
    serde_json::from_value(text.into()).map_err(|_| {
        "the indices are fuzzy-davies-bouldin, davies-bouldin, xie-beni, partition-coefficient, partition-entropy, \
         modified-partition-coefficient, fukuyama-sugeno, calinski-harabasz, simplified-silhouette, silhouette-squared, bic, gap"
            .into()
    })
}

/// `K` or `LOW..HIGH`, both ends included.
pub(crate) fn parse_clusters(text: &str) -> Result<Clusters, String> {
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| format!("{text:?} is not a number of clusters"));
    let clusters = match text.split_once("..") {
        None => Clusters::exactly(number(text)?),
        Some((min, max)) => Clusters { min: number(min)?, max: number(max.trim_start_matches('='))? },
    };
    if clusters.min > clusters.max {
        return Err("the range goes down: write it as LOW..HIGH, as in 2..9".into());
    }
    Ok(clusters)
}

/// `COLUMN=LOW:HIGH`, quantiles.
pub(super) fn winsor(text: &str, columns: &[Column]) -> Result<Winsor, Failure> {
    let bad = |why: &str| {
        Failure::new(
            Code::Usage,
            format!("--winsorise {text}: {why}"),
            "write it as COLUMN=LOW:HIGH with quantiles from 0 to 1, as in balance=0:0.99",
        )
    };
    let (name, range) = text.rsplit_once('=').ok_or_else(|| bad("there is no = in it"))?;
    let (low, high) = range.split_once(':').ok_or_else(|| bad("there is no : in it"))?;
    let quantile = |text: &str| text.trim().parse::<f64>().ok().filter(|q| (0.0..=1.0).contains(q));
    let (Some(lower), Some(upper)) = (quantile(low), quantile(high)) else {
        return Err(bad("the quantiles are not two numbers from 0 to 1"));
    };
    let column =
        columns.iter().position(|c| c.name == name).ok_or_else(|| bad("there is no such column of numbers"))?;
    Ok(Winsor { column: column as u32, lower, upper })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_ranges() {
        assert_eq!(parse_method("fedfcm").unwrap().name, "ffcm-avg2");
        assert!(parse_method("k-fed").unwrap_err().contains("comparison"));
        assert!(parse_method("dbscan").unwrap_err().contains("ffcf"));
        assert_eq!(parse_clusters("4"), Ok(Clusters { min: 4, max: 4 }));
        assert_eq!(parse_clusters("2..9"), Ok(Clusters { min: 2, max: 9 }));
        for bad in ["", "x", "5..3", "-1", "2..x"] {
            assert!(parse_clusters(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn indices_have_the_names_of_plans() {
        assert_eq!(parse_pick("silhouette-squared"), Ok(Pick::SilhouetteSquared));
        assert_eq!(parse_pick("gap"), Ok(Pick::Gap));
        assert!(parse_pick("dunn").unwrap_err().contains("xie-beni"));
        let why = parse_pick("silhouette").unwrap_err();
        assert!(why.contains("simplified-silhouette") && why.contains("silhouette-squared"), "{why}");
    }

    #[test]
    fn quantiles_of_a_column() {
        let columns = [Column { name: "a=b".into(), lower: 0.0, upper: 1.0 }];
        assert_eq!(winsor("a=b=0:0.99", &columns).unwrap(), Winsor { column: 0, lower: 0.0, upper: 0.99 });
        for bad in ["a", "c=0:1", "a=b=0", "a=b=0:2", "a=b=x:1"] {
            assert!(winsor(bad, &columns).is_err(), "{bad}");
        }
    }
}

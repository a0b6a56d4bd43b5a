//! Attacks of the literature, by which program they are tried here, and what comes of it. The book prints this table, and a test runs what it
//! says of plans.

/// What comes of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It succeeds.
    Succeeds,
    /// It does no better than the account of rho allows somebody who knows all other rows.
    Bounded,
    /// It learns nothing of any row.
    Nothing,
}

impl Verdict {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Succeeds => "**succeeds**",
            Verdict::Bounded => "within the account",
            Verdict::Nothing => "nothing",
        }
    }
}

/// An attack of the literature.
pub struct Known {
    /// Who described it.
    pub paper: &'static str,
    /// What it does.
    pub does: &'static str,
    /// The attack of `veilsum-audit plan` that tries it.
    pub by: &'static str,
    /// The same on recorded runs, where there is one: `veilsum-audit NAME`.
    pub also: Option<&'static str>,
    /// On some exact plan.
    pub exact: Verdict,
    /// With noise, rho 0.25.
    pub noisy: Verdict,
    /// What to do where it succeeds.
    pub advice: &'static str,
}

use Verdict::{Bounded, Nothing, Succeeds};

/// All of them.
pub const KNOWN: &[Known] = &[
    Known {
        paper: "Homer et al. 2008; Dwork et al. 2015",
        does: "Tracing: is a person among the rows, by the likelihood ratio of all totals?",
        by: "presence",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise",
    },
    Known {
        paper: "Fredrikson et al. 2014; Yeom et al. 2018",
        does: "Attribute inference: one unknown column of a person, all others known",
        by: "value",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise",
    },
    Known {
        paper: "Dinur & Nissim 2003; Cohen & Nissim 2020",
        does: "Reconstruction by whole numbers: a column of two values, for all rows at once, beside fine columns",
        by: "whole numbers",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise; fewer clusters",
    },
    Known {
        paper: "Lenstra, Lenstra & Lovász 1982, as a tool",
        does: "How often each of a few possible rows occurs, from fewer totals than rows are possible",
        by: "possible rows",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise",
    },
    Known {
        paper: "Yang, Luo & Li 2025 (TAR, arXiv 2511.07073)",
        does: "Reconstruction from disclosed centroids: rows that move between rounds",
        by: "moving rows",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise; a method with fuzzy groups does not help, see the next line",
    },
    Known {
        paper: "Denning, Denning & Schwartz 1979 (trackers)",
        does: "Few unknown rows, or totals before and after they came: which rows fit best?",
        by: "records",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise; after a declared change a site answers with noise only",
    },
    Known {
        paper: "Denning & Schlörer 1980",
        does: "Two descriptions in other bins are subtracted",
        by: "other bins",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise; one description for each data set",
    },
    Known {
        paper: "Hundepool et al. 2012 (small counts)",
        does: "Counts of one to four rows: a rare category, a bin, a cluster",
        by: "few in a cell",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise; wider bins, fewer categories",
    },
    Known {
        paper: "Ateniese et al. 2015; Melis et al. 2019",
        does: "Property inference: the share of one site's rows with a property, by all other sites together",
        by: "share of a site",
        also: Some("collusion-sybil"),
        exact: Succeeds,
        noisy: Succeeds,
        advice: "no noise for single rows hides a site: take part where all others would not work together",
    },
    Known {
        paper: "found here",
        does: "An outlier's record is a published centre",
        by: "published record",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise",
    },
    Known {
        paper: "Boenisch et al. 2023 (a server that chooses)",
        does: "First centres beside a person",
        by: "chosen start",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "agree to no exact plan that names its first centres; the program does not let you",
    },
    Known {
        paper: "Ganta, Kasiviswanathan & Smith 2008",
        does: "A second plan over the same rows",
        by: "two plans",
        also: None,
        exact: Succeeds,
        noisy: Bounded,
        advice: "noise: the account counts both",
    },
    Known {
        paper: "Kenthapadi, Mishra & Nissim 2005 (refusals)",
        does: "Proposals and refusals as an oracle",
        by: "proposals",
        also: None,
        exact: Nothing,
        noisy: Nothing,
        advice: "nothing: an answer follows from public documents, policy and ledger [PRO-2]",
    },
];

/// The table of the book.
pub fn table() -> String {
    let head = "| paper | attack | program | exact plan | with noise | what to do |\n|---|---|---|---|---|---|\n";
    let line = |known: &Known| {
        let also = known.also.map_or_else(String::new, |name| format!(", `{name}`"));
        let (exact, noisy) = (known.exact.word(), known.noisy.word());
        format!("| {} | {} | *{}*{also} | {exact} | {noisy} | {} |\n", known.paper, known.does, known.by, known.advice)
    };
    std::iter::once(head.to_owned()).chain(KNOWN.iter().map(line)).collect()
}

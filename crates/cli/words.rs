//! Sentences for whoever has to agree to a plan without reading code: what is done with columns, and what totals can tell. They
//! say no more than `threat-model.md` does.

pub(crate) use veilsum_node::report::totals::{EXACT, totals_tell};
use veilsum_node::{
    cost::Cost,
    documents::{Federation, Reading, SitePolicy, roster_fingerprint},
    door::Unit,
};
use veilsum_proto::roster::Roster;

/// The words of a roster, to be read aloud: five on a line, behind `fingerprint`.
pub(crate) fn fingerprint_line(roster: &Roster) -> String {
    let words = roster_fingerprint(&roster.hash());
    let words: Vec<&str> = words.split(' ').collect();
    let lines: Vec<String> = words.chunks(5).map(|five| five.join(" ")).collect();
    format!("fingerprint  {}\n", lines.join(&format!("\n{:13}", "")))
}

use crate::verb::listed;

/// What is done with the columns of a file, with a word for each kind.
pub(crate) fn columns_of(reading: &Reading) -> [(&'static str, String); 2] {
    [("columns that are used", listed(&reading.used)), ("columns that stay here", listed(&reading.ignored))]
}

/// What a plan does with columns that it does not name.
pub(crate) const UNREAD: &str = "Nothing of any other column of a site's file leaves it";

/// What of it a terminal does not show already beside [`Cost::to_text`].
pub(crate) fn totals_beside(federation: &Federation, cost: &Cost) -> String {
    let shown = |sentence: &String| sentence.contains(&*cost.which_sites) || sentence.contains(&cost.sites_mean[1..]);
    let others = totals_tell(federation, cost).into_iter().filter(|sentence| !shown(sentence));
    others.map(|sentence| format!("totals      {sentence}\n")).collect()
}

/// The same for a terminal.
pub(crate) fn totals(sentences: &[String]) -> String {
    let each = sentences.iter().map(|sentence| format!("  {sentence}\n"));
    format!("What totals can tell\n{}", each.collect::<String>())
}

/// What the account means for a person of this site ([NOI-6]).
pub(crate) fn of_a_person(site: &SitePolicy) -> String {
    match site.policy.unit {
        Unit::Row => "The account is of one row: a person with r rows costs r² times as much. `person` under [rows] in site.toml bounds r."
            .to_owned(),
        Unit::Person(1) => "One row of a person counts here, so the account is of one person.".to_owned(),
        Unit::Person(rows) => format!(
            "The account is of one person, of whom {rows} rows count here at most. Plans that hide anything else are refused."
        ),
    }
}

#[cfg(test)]
mod tests {
    use veilsum_node::door::Policy;

    use super::*;

    #[test]
    fn a_site_says_what_its_account_means_for_a_person() {
        for (unit, said) in [
            (Unit::Row, "a person with r rows costs r² times"),
            (Unit::Person(1), "the account is of one person"),
            (Unit::Person(3), "of whom 3 rows count"),
        ] {
            let site = SitePolicy::from(Policy { unit, ..Policy::default() });
            assert!(of_a_person(&site).contains(said), "{}", of_a_person(&site));
        }
    }
}

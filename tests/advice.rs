//! No message suggests what weakens a protection (CONTRIBUTING.md, rule 10): every text in the product's sources is read for
//! advice to give up some of what a plan or a policy protects by.

use crate::source::{PRODUCT, product};

/// Where a larger number protects less, and the words for one.
const LESS_BY_MORE: &str =
    "max_rows min_total_rows epsilon delta budget step_bits max_rounds_in_all max_runs rounds_in_all max_epsilon";
const MORE: &str = "larger higher raise increase more greater bigger finer";
/// Where a smaller number protects less, and the words for one.
const LESS_BY_LESS: &str = "min_sites min_cohort colluders threshold records min_rows min_total_rows";
const LESS: &str = "smaller lower fewer reduce less decrease drop";
/// What a message does not offer in any form.
const NEVER: [&str; 7] = [
    "let the coordinator judge",
    "choose another name",
    "rename the data",
    "a larger one",
    "under another seed",
    "remove the ledger",
    "delete the ledger",
];

/// The advice in a text that would weaken something.
fn weakening(text: &str) -> Option<String> {
    let plain = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    if let Some(phrase) = NEVER.iter().find(|phrase| plain.contains(*phrase)) {
        return Some((*phrase).into());
    }
    // A clause ends where another thought begins: what stands behind it is not what the word before it is about.
    plain.split([';', '.', ':', ',', '(', ')']).find_map(|clause| {
        let name = |word: &str| {
            word.trim_matches(|c: char| !c.is_alphanumeric()).replace('-', "_").trim_end_matches("'s").to_owned()
        };
        let words: Vec<String> = clause.split(' ').map(name).filter(|word| !["a", "the"].contains(&&**word)).collect();
        words.windows(2).find_map(|pair| {
            let [how, what] = pair else { return None };
            let among = |words: &str, word: &str| words.split(' ').any(|known| known == word);
            let both = |words, names| among(words, how) && among(names, what);
            (both(MORE, LESS_BY_MORE) || both(LESS, LESS_BY_LESS)).then(|| format!("{how} {what}"))
        })
    })
}

#[test]
fn no_message_suggests_what_weakens_a_protection() {
    let (mut read, mut found) = (0, Vec::new());
    let sources = product(PRODUCT);
    for (path, source) in &sources {
        for text in &source.texts {
            read += 1;
            assert!(!text.contains(";\n"), "{path}: code was read as text: {text}");
            found.extend(weakening(text).map(|what| format!("{path}: {what:?} in {text:?}")));
        }
    }
    assert!(sources.len() > 150 && read > 2_000, "only {read} texts in {} files were read", sources.len());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Each of these stood in a message, or could.
#[test]
fn such_advice_is_found() {
    for text in [
        "this site has more rows than the plan's max_rows (100): ask for a plan with a larger one",
        "under noise epsilon is too small for this delta: a larger one of either",
        "agree on a plan with a larger max_rows",
        "raise min_total_rows or lower --k in `veilsum plan new`",
        "start the run again with a new plan, or let the coordinator judge",
        "a larger min_sites, or fewer colluders",
        "give the site a larger budget",
        "lower the threshold, and run again",
        "choose another name for the data set",
    ] {
        assert!(weakening(text).is_some(), "{text}");
    }
    for text in [
        "lower max_rows, K, the restarts, or a site's own steps in `veilsum plan new`",
        "raise sample or min_sites in `veilsum plan new`",
        "see what was given away with `veilsum check`; agree on fewer rounds or K, a coarser step_bits",
    ] {
        assert_eq!(weakening(text), None, "{text}");
    }
}

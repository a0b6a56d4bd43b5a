//! Who took part, what went over the links, what was given away, and on which documents all of it rests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use veilsum_charts::{Chart, Page, Plot, page::Cell, text::bytes};
use veilsum_federation::spoken::roster_fingerprint;

use super::reported::Reported;
use crate::{
    agreed::fingerprint,
    app_messages::clean,
    cost::{Cost, counted},
    report::{told::Told, totals::totals_tell},
    signed::{self, OWN, Signatures},
    traffic::Count,
};

/// Sites that are listed in the open; more are folded up.
const LISTED: usize = 30;

/// The sites, who is missing and why.
pub(super) fn who(page: &mut Page, all: &Reported) {
    let told = &all.told;
    if told.cohort.is_empty() && told.missing.is_empty() {
        return;
    }
    page.part("Who took part");
    let (sites, n) = (counted(told.cohort.len(), "site"), told.cohort.len() + told.missing.len());
    let what = if told.description.is_some() { "these numbers" } else { "the centres" };
    let missing = if told.missing.is_empty() && told.departures.is_empty() { ", nobody missing" } else { "" };
    page.paragraph(&format!("{sites} of {n} in the total that {what} come from{missing}."));
    if let Some(over) = &told.indices_cohort {
        page.paragraph(&format!(
            "A site was lost between the centres and their indices: these are over {} alone.",
            over.join(", ")
        ));
    }
    let departed = |name: &String| told.departures.iter().find(|one| one.site == *name);
    let is_gone = |name: &String| told.missing.contains(name) || departed(name).is_some();
    let row = |name: &String| {
        let name_of = Cell::Text(name.clone());
        if !is_gone(name) {
            return [name_of, Cell::Good("to the end".to_owned()), Cell::Text(String::new())];
        }
        let since = departed(name).filter(|one| one.question > 0).map_or("no".to_owned(), |one| until(one.question));
        [name_of, Cell::Bad(since), Cell::Text(why_missing(told, name))]
    };
    let (gone, there): (Vec<&String>, Vec<&String>) =
        told.missing.iter().chain(&told.cohort).partition(|name| is_gone(name));
    let rows = gone.into_iter().chain(there).map(row).collect();
    listed(page, &format!("All {n} sites"), &["site", "in the totals", "why not"], rows);
    if let Some(of) = &all.federation {
        page.paragraph(&format!(
            "{} coordinated and saw totals; {} counted rows and saw no centre.",
            of.roster.coordinator.name, of.roster.intermediary.name
        ));
    }
}

/// How long a site was in the totals, of which the one of this question was the first without it.
fn until(question: u32) -> String {
    match question {
        1 => "never".to_owned(),
        2 => "in that of question 1 alone".to_owned(),
        _ => format!("to question {}", question - 1),
    }
}

fn why_missing(told: &Told, name: &String) -> String {
    if let Some(why) = told.departures.iter().find(|one| one.site == *name).and_then(|one| one.why.as_ref()) {
        return clean(why);
    }
    match &told.ended_early {
        Some(early) if early.refused.contains(name) => "refused to answer, as its policy or budget has it".to_owned(),
        Some(early) if early.lost.contains(name) => {
            "lost: gone, silent, or left out because it broke a rule".to_owned()
        }
        _ => told
            .warnings
            .iter()
            .find(|warning| warning.contains(name.as_str()))
            .map_or("not said in this file; the coordinator's result has the reason".to_owned(), |warning| {
                clean(warning)
            }),
    }
}

/// What went over the links.
pub(super) fn traffic(page: &mut Page, told: &Told) {
    if told.traffic.0.is_empty() {
        return;
    }
    page.part("Traffic");
    let whole = |counts: &mut dyn Iterator<Item = &Count>| counts.fold(Count::default(), |all, count| all.and(*count));
    let parties: Vec<(&str, Count)> =
        told.traffic.0.iter().map(|(party, sent)| (party.as_str(), whole(&mut sent.values()))).collect();
    let all = whole(&mut parties.iter().map(|(_, sent)| sent));
    let mut phases: BTreeMap<&str, u64> = BTreeMap::new();
    for (phase, count) in told.traffic.0.values().flatten() {
        *phases.entry(phase.as_ref()).or_default() += count.bytes;
    }
    let messages = counted(all.messages as usize, "message");
    let volume = bytes(all.bytes);
    page.paragraph(&format!(
        "{volume} in {messages}, as the party counted them that wrote the result: masked words, keys, shares, signatures and openings."
    ));
    let (unit, size) = if phases.values().all(|sent| *sent < 10_000_000) { ("kB", 1e3) } else { ("MB", 1e6) };
    let (names, values) =
        phases.iter().map(|(phase, sent)| (phase.replace('_', " "), (*sent as f64 / size).into())).unzip();
    let bars = Plot::Bars(names, vec![(unit.to_owned(), values)]);
    page.charts([&Chart::new(format!("{unit} by what they were for"), unit, "", bars)]);
    let n = parties.len();
    let rows: Vec<[Cell; 3]> = parties
        .into_iter()
        .map(|(party, sent)| [Cell::from(party), Cell::Text(bytes(sent.bytes)), Cell::Text(sent.messages.to_string())])
        .collect();
    let each = if n == 1 { "What this party sent".to_owned() } else { format!("What each of {n} parties sent") };
    page.folded(&each, |page| {
        page.numbers(&["party", "sent", "messages"], rows);
    });
}

/// What was given away.
pub(super) fn privacy(page: &mut Page, all: &Reported) {
    let told = &all.told;
    page.part("What was given away");
    page.paragraph(
        "No row left a site. What left were numbers behind masks, of which only totals over sites became readable.",
    );
    let mut lines = Vec::new();
    if told.questions > 0 {
        lines.push(format!("{} were put to the sites, each one total.", counted(told.questions as usize, "question")));
    }
    let drowned = told.errors.as_ref().map_or(0, |errors| errors.not_distinguishable_from_noise.len());
    if drowned > 0 {
        let how_many = counted(drowned, "number");
        lines.push(format!("What cannot be told from the noise is left out: {how_many} of the result."));
    }
    let cost = all.federation.as_ref().and_then(|of| Some((of, Cost::of(of).ok()?)));
    match cost {
        Some((of, cost)) => lines.extend(totals_tell(of, &cost)),
        None => {
            lines.push(told.privacy.as_ref().map_or("No noise: totals are exact.".to_owned(), |of| of.promise.clone()));
            lines.push(
            "With all other sites' parts of a total one subtracts them and has the last one's part: nothing can prevent this. The plan, \
             which does not lie beside this result, says how many sites a total covers."
                .to_owned(),
            );
        }
    }
    lines.push("What a site gave away over all runs, its own ledger says: veilsum check.".to_owned());
    page.list(&lines);
}

/// Plan, versions, hashes.
pub(super) fn documents(page: &mut Page, all: &Reported) {
    let (told, of) = (&all.told, all.federation.as_ref());
    page.part("Plan, versions and hashes");
    let withstands = |of| Cost::of(of).map_or("not known".to_owned(), |cost| cost.withstands.to_string());
    let own: Vec<&str> = OWN.into_iter().filter(|key| all.file.get(key).is_some()).collect();
    let rows = [
        ("plan, hash", Some(clean(&told.plan_hash))),
        ("roster, hash", all.text("roster_hash")),
        ("model, digest", all.text("model_digest")),
        ("run", all.text("run")),
        ("plan, fingerprint to compare", of.map(|of| fingerprint(&of.terms.hash().0))),
        ("roster, fingerprint to compare", of.map(|of| roster_fingerprint(&of.roster.hash()))),
        ("federation", of.map(|of| of.roster.name.clone())),
        ("K of the plan", of.map(|of| of.work.recipe.clusters.to_string())),
        ("columns of the plan", of.map(|of| of.work.headers().collect::<Vec<_>>().join(", "))),
        ("questions at most", of.map(|of| of.work.recipe.max_questions().to_string())),
        ("colluding sites that it withstands", of.map(withstands)),
        ("method", Some(clean(&told.method))),
        ("standardised", told.standardisation.as_ref().map(|_| "yes, by the cohort's own totals".to_owned())),
        ("who told the number of rows", told.n_total_from.as_deref().map(clean)),
        ("software of the run", Some(all.text("software").unwrap_or("not in this file".to_owned()))),
        ("version of the protocol", all.file["wire_version"].as_u64().map(|version| version.to_string())),
        ("released", released(&all.file["release"])),
        ("written and signed by", all.signatures.as_ref().map(|signed| clean(&signed.written_by))),
        ("signatures", all.signatures.is_none().then(|| "none in this file".to_owned())),
        ("the word of whoever wrote it alone", Some(own.join(", ")).filter(|own| !own.is_empty())),
        ("made from", all.of.file_name().map(|name| name.to_string_lossy().into_owned())),
    ];
    let known = rows.into_iter().filter_map(|(what, value)| Some([what.to_owned(), value?]));
    page.table(&["what", "this result"], known);
    if let Some(signed) = &all.signatures {
        signers(page, all, signed);
    }
    if !all.unused.is_empty() {
        page.paragraph("Left out of what lies beside it:").list(&all.unused);
    }
}

/// What left all sites together.
fn released(release: &Value) -> Option<String> {
    let number = |key: &str| release[key].as_u64().map(|n| n as usize);
    let totals = number("totals").map_or("totals".to_owned(), |n| counted(n, "total"));
    let sites = match release["sites"].as_str()? {
        "same" => "all sites in every total",
        _ => "totals over the sites that were left",
    };
    let rows = counted(number("min_total_rows")?, "row");
    Some(format!("{totals}, opened to the sites; {sites}; {rows} in all at least"))
}

/// Who signed the result, and where its ledger ended then.
fn signers(page: &mut Page, all: &Reported, signatures: &Signatures) {
    let (told, by) = (&all.told, &signatures.result);
    let sites: BTreeSet<&String> = told.cohort.iter().chain(&told.missing).collect();
    let signers: BTreeSet<&String> = by.iter().map(|by| &by.party).collect();
    // A site's own file has the coordinator's signature and its own; and where totals cannot be recomputed, no site is asked.
    let asked = all.federation.as_ref().is_none_or(|of| signed::is_recomputed(&of.work));
    let of_all = asked && !sites.contains(&signatures.written_by);
    let silent = told.cohort.iter().filter(|name| of_all && !signers.contains(name));
    let signed = by.iter().map(|by| {
        let none = if sites.contains(&by.party) { "not said" } else { "it has no ledger: it is no site" };
        let ledger = by.ledger.as_ref().map_or(none.to_owned(), |link| clean(link));
        [Cell::Text(clean(&by.party)), Cell::Good("yes".to_owned()), Cell::Text(ledger)]
    });
    let silent = silent.map(|name| [Cell::Text(clean(name)), Cell::Bad("no".to_owned()), Cell::Text(String::new())]);
    if !asked {
        page.paragraph("Sites were not asked to sign: they cannot recompute a result whose totals they do not see, or that the intermediary judged.");
    } else if !of_all {
        page.paragraph("This is a site's own file, with its signature and the coordinator's. The coordinator's file has those of all sites.");
    }
    let rows: Vec<[Cell; 3]> = signed.chain(silent).collect();
    if rows.is_empty() {
        page.paragraph("Nobody but its writer signed this file. The centres are what the coordinator sent.");
        return;
    }
    if !matches!(all.holds, Some(Err(_))) {
        page.paragraph(
            "Whoever signed came to the same numbers. A signature of a site binds its ledger, too, by the link of the last entry: that \
             site's operator finds it in the ledger's own file.",
        );
    }
    page.paragraph(match &all.holds {
        Some(Ok(())) => {
            "The signatures held when this page was made. A page can be forged: whoever has the file itself checks it with veilsum verify, \
             which also names what no signature covers."
        }
        Some(Err(_)) => "The signatures do not hold: nothing on this page is vouched for.",
        None => {
            "Whether these signatures hold, this page does not say: veilsum verify does, and names what no signature covers."
        }
    });
    let title = format!("All {} signatures", rows.len());
    listed(page, &title, &["party", "signed the result", "its ledger ended at"], rows);
}

/// A table, folded up under a title where it is long.
fn listed(page: &mut Page, title: &str, heads: &[&str], rows: Vec<[Cell; 3]>) {
    if rows.len() > LISTED {
        page.folded(title, |page| {
            page.cells(heads, rows);
        });
    } else {
        page.cells(heads, rows);
    }
}

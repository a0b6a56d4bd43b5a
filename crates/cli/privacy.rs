//! `veilsum plan privacy`: the report that a data protection officer asks for, from the plan, the roster, the policy and the threat
//! model. Its numbers are those of `plan check` and `check`; what is not protected stands in it in the threat model's own
//! words, which are part of the program.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use veilsum_node::{
    cost::Cost,
    documents::{self, Federation, Reading, SitePolicy, policy_of, reading_of, roster_fingerprint},
    dp,
    error::Failure,
    forecast::Forecast,
    plan::PlanSpec,
    refusal::rho_text,
};

use crate::{
    plan::{ReadArgs, to_text},
    verb::Verb,
    words::{self, columns_of, totals_tell},
};

const MODEL: &str = include_str!("../../threat-model.md");
const CHAPTER: &str = include_str!("../../docs/src/privacy.md");

/// `veilsum plan privacy`
#[derive(Args, Debug)]
pub(crate) struct PrivacyArgs {
    /// Which plan.
    #[command(flatten)]
    pub of: ReadArgs,
    /// What the federation is for, in a sentence; left out, it is a line to fill in
    #[arg(long, value_name = "TEXT")]
    pub purpose: Option<String>,
    /// This site's rows: the report then says which of their columns are ignored; none is read
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// The policy [default: site.toml beside the key, else the default]
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// This site's secret key file, beside which its policy lies; it is not opened
    #[arg(long, value_name = "FILE.key")]
    pub key: Option<PathBuf>,
}

impl Verb for PrivacyArgs {
    /// Prints the report, as Markdown.
    ///
    /// # Errors
    /// A [`Failure`] that names the file at fault.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let federation = documents::load_federation(&self.of.roster, &self.of.plan)?;
        let (site, from) = policy_of(self.policy.as_deref(), self.key.as_deref())?;
        let rows = site.rows_from(self.data.as_deref(), from.as_deref(), None).ok();
        let report = Report {
            cost: Cost::of(&federation)?,
            forecast: Forecast::of(&federation)?,
            reading: rows.map(|rows| reading_of(&federation, &rows)).transpose()?,
            policy_from: from.map_or("the default".to_owned(), |path| path.display().to_string()),
            purpose: self.purpose.clone().unwrap_or_else(|| BLANK.to_owned()),
            federation,
            site,
        };
        let text = report.text();
        let value = json!({ "report": text,
            "not_protected": unprotected().into_iter().map(|(title, _)| title).collect::<Vec<_>>() });
        crate::verb::print(json, &value, text.trim_end())
    }
}

/// Where somebody writes.
const BLANK: &str = "________";

/// Markdown that grows from top to bottom. A name in it may be anything, so that what is not the documents' own is escaped.
#[derive(Default)]
struct Text(String);

impl Text {
    fn part(&mut self, title: &str) {
        self.0 += &format!("## {title}\n\n");
    }

    fn paragraph(&mut self, text: &str) {
        self.marked(&plain(text));
    }

    /// A paragraph of the project's own documents.
    fn marked(&mut self, text: &str) {
        self.0 += &format!("{text}\n\n");
    }

    fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        let items: String = items.into_iter().map(|item| format!("* {}\n", plain(item.as_ref()))).collect();
        self.marked(&items);
    }

    /// Of the project's own documents cells are `str::to_owned`, and of others [`plain`].
    fn table<T: AsRef<str>>(
        &mut self,
        columns: &[&str],
        rows: impl IntoIterator<Item: IntoIterator<Item = T>>,
        written: fn(&str) -> String,
    ) {
        self.0 += &format!("| {} |\n|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
        for row in rows {
            let cells: Vec<String> = row.into_iter().map(|cell| written(cell.as_ref())).collect();
            self.0 += &format!("| {} |\n", cells.join(" | "));
        }
        self.0.push('\n');
    }
}

/// A text in which no sign is Markdown's or that of a text.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if matches!(sign, '<' | '>' | '|' | '*' | '[' | ']' | '\\') {
            out.push('\\');
        }
        out.push(if sign.is_control() { ' ' } else { sign });
    }
    out
}

struct Report {
    federation: Federation,
    cost: Cost,
    forecast: Forecast,
    reading: Option<Reading>,
    site: SitePolicy,
    policy_from: String,
    purpose: String,
}

impl Report {
    fn text(&self) -> String {
        let roster = &self.federation.roster;
        let mut text = Text(format!("# Privacy report: {}\n\n", plain(&roster.name)));
        let sites_mean = &self.cost.sites_mean;
        text.paragraph(&format!(
            "No row leaves a site. What leaves are vectors of numbers behind masks, of which only totals over sites become readable; {sites_mean}. \
             This report says which data, for what, who sees what, for how long, and what if something goes wrong."
        ));
        let [plan, roster_words] = [self.federation.terms.hash(), roster.hash()].map(|hash| roster_fingerprint(&hash));
        let policy_from = &self.policy_from;
        text.paragraph(&format!(
            "It was made from the plan {plan} and the roster {roster_words} (fingerprints to compare), and from the policy of one site: \
             {policy_from}. Its numbers are those of `veilsum plan check` and `veilsum check`. Nobody has audited this software independently."
        ));
        self.data(&mut text);
        self.purpose(&mut text);
        self.who_sees_what(&mut text);
        self.how_long(&mut text);
        self.if_something_goes_wrong(&mut text);
        self.protection(&mut text);
        not_protected(&mut text);
        to_fill_in(&mut text);
        text.0
    }

    fn data(&self, text: &mut Text) {
        let work = &self.federation.work;
        let blank = BLANK.to_owned();
        text.part("Which data");
        text.paragraph(
            "These columns are read at every site, by a program that runs there. Ranges and lists are public, and must not come from rows.",
        );
        let row = |name: &String, values: String| [name.clone(), blank.clone(), values, blank.clone()];
        let numbers = work.columns.iter().map(|c| row(&c.name, format!("{} to {}", c.lower, c.upper)));
        let named = work.categorical.iter().map(|c| row(&c.column, format!("one of {}", c.categories.join(", "))));
        text.table(&["column", "unit", "possible values", "what it is needed for"], numbers.chain(named), plain);
        match &self.reading {
            Some(reading) => {
                text.table(
                    &["in this site's file", "columns"],
                    columns_of(reading).map(|(a, b)| [a.to_owned(), b]),
                    plain,
                );
            }
            None => text.paragraph(&format!("{}.", words::UNREAD)),
        }
    }

    fn purpose(&self, text: &mut Text) {
        let work = &self.federation.work;
        let k = work.recipe.clusters;
        text.part("For what");
        text.paragraph(&format!("Purpose: {}", self.purpose));
        let method_name = work.method_name();
        text.paragraph(&format!(
            "What is computed: groups of similar rows over all sites (the method {method_name}, {k} groups). The result says where the groups lie \
             and how large they are; it names no row. Each site can assign its own rows to the groups on its own machine, and nothing leaves for \
             that."
        ));
        let roster = &self.federation.roster;
        let does = [
            "makes the plan, asks the questions, sees the totals and the result; has no rows in this role",
            "counts the rows of all sites together; belongs to another organisation than the coordinator",
            "has rows; answers questions behind masks, as far as its own policy lets it",
        ];
        let blank = || BLANK.to_owned();
        let aggregators =
            [(&roster.coordinator, "coordinator", does[0]), (&roster.intermediary, "intermediary", does[1])];
        let sites = roster.sites.iter().map(|site| (site, "site", does[2]));
        let parties = aggregators.into_iter().chain(sites);
        let parties =
            parties.map(|(of, role, does)| [of.name.clone(), role.to_owned(), does.to_owned(), blank(), blank()]);
        text.table(&["party", "role", "what it does", "organisation", "contact"], parties, plain);
        text.paragraph(
            "Coordinator and intermediary must be different organisations: together they see both totals, and if sites left a run they can \
             subtract. The program cannot check that.",
        );
    }

    fn who_sees_what(&self, text: &mut Text) {
        text.part("Who sees what");
        text.list(totals_tell(&self.federation, &self.cost));
        text.paragraph("What leaves each site, by the kind of question. Every number of it is behind masks, and only the total is opened.");
        let rows = self.cost.questions.iter().map(|question| {
            let part = self.forecast.parts.iter().find(|(name, ..)| *name == question.name);
            let (times, all) = part
                .map_or((String::new(), String::new()), |(_, times, numbers)| (times.to_string(), numbers.to_string()));
            [question.name.to_owned(), question.asked_by.to_owned(), times, question.words.to_string(), all]
        });
        let columns =
            ["question", "asked by", "times at most", "numbers in the first answer", "numbers in all, at most"];
        text.table(&columns, rows, plain);
        text.paragraph(&match &self.federation.work.recipe.noise {
            None => format!("Together: {} exact numbers at most. {}", self.forecast.total(), words::EXACT),
            Some(noise) => {
                format!("{} {}", dp::promise(noise, self.site.policy.usual_cap()), words::of_a_person(&self.site))
            }
        });
        text.paragraph("What these totals say, and where that is dangerous:");
        let asked = kinds_asked(&self.federation.work, self.cost.questions.iter().map(|question| question.name));
        let mut said = rows_of(MODEL, "What each kind of question gives away");
        said.retain(|row| asked.iter().any(|kind| row.first().is_some_and(|first| first.starts_with(kind))));
        text.table(&["question", "the coordinator learns", "where it is dangerous"], said, str::to_owned);
        text.paragraph("What every party can see, also one that lies or works together with others:");
        let parties = rows_of(MODEL, "Who learns what").into_iter().map(|row| row.into_iter().take(4));
        text.table(&["who", "has", "learns", "what bounds it"], parties, str::to_owned);
    }

    fn how_long(&self, text: &mut Text) {
        text.part("For how long");
        let rho_text = rho_text(self.site.policy.usual_cap());
        text.paragraph(&format!(
            "Masks and what they hide are kept in memory, and in a journal until the next question, for the length of a run. A site's ledger is \
             kept as long as its state folder: by it the site knows what it gave away, over all plans and runs. It holds digests and counts, and \
             no value. All plans together spend rho {rho_text} at most, unless its operator raises the cap."
        ));
        text.table(&["file at a party", "contents", "keep it?"], rows_of(CHAPTER, "What stays on disk"), str::to_owned);
        text.paragraph(
            "Totals that were opened cannot be taken back: whoever learnt them keeps them as long as they like.",
        );
        text.paragraph(&format!("The result is kept until: {BLANK}"));
    }

    fn if_something_goes_wrong(&self, text: &mut Text) {
        text.part("What if something goes wrong");
        text.list([
            "A site says no: a policy that is asked for more than it allows refuses the question, and nothing of it leaves.",
            "A site is lost: the run waits for it, goes on without it if the plan says `any`, or ends with the totals that are out.",
            "A party breaks a rule of the protocol: it is named where that can be known.",
            "A key or a machine is stolen: tell the coordinator and the other sites at once. What can be read there stands under “Seizure” below.",
            "Rows have to be deleted: the site removes them from its file. What earlier totals say stays said.",
        ]);
        text.paragraph(&format!("Who is told, by whom, within which time: {BLANK}"));
    }

    fn protection(&self, text: &mut Text) {
        text.part("What protects it");
        text.paragraph(
            "Every site recomputes every total, and refuses questions that do not follow from it. What `veilsum plan check` says of this plan:",
        );
        text.list(to_text(&self.federation, &self.cost).lines());
        text.paragraph(&format!("What this site demands for itself ({}):", self.policy_from));
        let keys = serde_json::to_value(&self.site).unwrap_or_default();
        let keys = keys.as_object().into_iter().flatten().map(|(key, value)| [key.clone(), value.to_string()]);
        text.table(&["key", "value"], keys, plain);
        text.paragraph("Where secrets are, and how they are protected:");
        let assets = rows_of(MODEL, "What is protected");
        text.table(&["asset", "where it is", "from whom it is protected, and how"], assets, str::to_owned);
        text.paragraph("Security measures, boundary by boundary:");
        let boundaries = rows_of(MODEL, "Boundaries").into_iter().map(|row| row.into_iter().take(3));
        text.table(&["boundary", "threat", "measure"], boundaries, str::to_owned);
    }
}

fn not_protected(text: &mut Text) {
    text.part("What is not protected");
    text.paragraph("In the words of the threat model, all of its points:");
    for (title, rest) in unprotected() {
        text.marked(&format!("**{title}**{rest}"));
    }
}

fn to_fill_in(text: &mut Text) {
    text.part("To fill in");
    let lines = [
        "Controller, or joint controllers, and their agreement",
        "Data protection officer",
        "Legal basis, and that of special categories of data",
        "People whose data these rows are, and how they are told",
        "Who compared the roster's fingerprint with another member, and when",
        "Who backs up the ledger, and makes sure that a state folder is never restored during a run",
        "Assessed by, date, signature",
    ];
    text.table(&["question", "answer"], lines.map(|line| [line, BLANK]), plain);
}

/// How the rows of the threat model's table begin that are about what a plan asks.
fn kinds_asked(work: &PlanSpec, questions: impl Iterator<Item = &'static str>) -> Vec<String> {
    let recipe = &work.recipe;
    let mut kinds: Vec<String> = questions.filter_map(|name| Some(of_kind(name)?.to_owned())).collect();
    let method = format!("`{}`", work.method_name());
    // The row of the method has it among others.
    let table = rows_of(MODEL, "What each kind of question gives away");
    let firsts = table.iter().filter_map(|row| row.first().copied());
    kinds.extend(firsts.filter(|first| first.contains(&method)).map(str::to_owned));
    let more = [
        (recipe.range.is_some(), "range of K"),
        (recipe.choice.by.name() == "gap", "gap statistic"),
        (!work.categorical.is_empty(), "categorical columns"),
    ];
    kinds.extend(more.into_iter().filter(|(asked, _)| *asked).map(|(_, kind)| kind.to_owned()));
    kinds
}

/// The row that is about a question, where it is not that of the method.
fn of_kind(question: &str) -> Option<&'static str> {
    Some(match question {
        "moments" => "mean and deviation",
        "margins" => "first centres",
        "local_choice" => "range of K",
        "fuzzy_validation" | "validation" | "judged_validation" => "validity",
        _ => return None,
    })
}

/// The part of a document under a heading of the second level, with the parts of the third level below it.
fn section(document: &'static str, heading: &str) -> &'static str {
    let (_, after) = document.split_once(&format!("\n## {heading}\n")).unwrap_or_default();
    after.split("\n## ").next().unwrap_or_default()
}

/// The rows of the first table of a section, without its head.
fn rows_of(document: &'static str, heading: &str) -> Vec<Vec<&'static str>> {
    let lines = section(document, heading).lines();
    let table = lines.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2).map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The points of the threat model that say what is not protected: what stands in bold, and the rest.
fn unprotected() -> Vec<(&'static str, String)> {
    let mut points: Vec<(&str, String)> = Vec::new();
    for line in section(MODEL, "What is not protected").lines() {
        let headed = line.split_once(". **").filter(|(number, _)| number.parse::<u8>().is_ok());
        match headed.and_then(|(_, rest)| rest.split_once("**")) {
            Some((title, rest)) => points.push((title, rest.to_owned())),
            None => points.last_mut().into_iter().for_each(|(_, text)| *text += &format!("\n{}", line.trim_start())),
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the report takes from the documents is there: a heading that was renamed, or a table in another form, is noticed here.
    #[test]
    fn the_documents_have_what_the_report_takes_from_them() {
        let titles: Vec<&str> = unprotected().into_iter().map(|(title, _)| title).collect();
        assert_eq!(titles.len(), 15, "{titles:?}");
        assert_eq!(titles[0], "Nobody has audited this software independently.");
        assert!(unprotected().iter().all(|(_, text)| text.len() > 60 && !text.contains("\n## ")));
        for (document, heading, columns) in [
            (MODEL, "What is protected", 3),
            (MODEL, "Who learns what", 5),
            (MODEL, "What each kind of question gives away", 3),
            (MODEL, "Boundaries", 4),
            (CHAPTER, "What stays on disk", 3),
        ] {
            let rows = rows_of(document, heading);
            assert!(rows.len() >= 5 && rows.iter().all(|row| row.len() == columns), "{heading}: {rows:?}");
        }
        let rows = rows_of(MODEL, "What each kind of question gives away");
        let starts = |kind: &str| rows.iter().any(|row| row[0].starts_with(kind));
        let questions = ["moments", "margins", "local_choice", "validation"];
        assert!(questions.iter().all(|name| of_kind(name).is_some_and(starts)));
        assert!(["gap statistic", "categorical columns"].into_iter().all(starts));
        let methods = ["fcm", "ffcm-avg1", "ffcm-avg2", "kmeans", "fkm", "ffcf"];
        assert!(methods.iter().all(|name| rows.iter().any(|row| row[0].contains(&format!("`{name}`")))));
    }
}

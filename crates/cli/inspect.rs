//! `veilsum inspect`: what this site would send for a plan and its data, field by field, without sending it.
//!
//! The frames come from the site's real state machine ([`veilsum_node::rehearsal`]); nothing here is a description by hand but
//! the words. No value, count or statistic of the rows is printed.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use veilsum_proto::{identity::Identity, message::Kind, noise::Key, roster::PartyId};

use crate::{
    page::{self, Page, Print},
    verb::Verb,
    words,
};
use veilsum_node::{
    agreed::questions,
    app_messages::{self, Hello, SOFTWARE},
    cost::{Cost, QuestionCost, counted, frame_bytes, slots_of},
    documents::{self, Federation, Offered, Reading, load_identity},
    error::{Code, Failure},
    question::{Question, Terms, contribute},
    rehearsal::{Rehearsal, Sent, rehearse},
    role::system_rng,
};

/// Show what this site would send for a plan and its data, without sending it
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    /// The federation's roster
    #[arg(long, value_name = "FILE", default_value = "roster.toml")]
    pub roster: PathBuf,
    /// The plan
    #[arg(long, value_name = "FILE", default_value = "plan.toml")]
    pub plan: PathBuf,
    /// This site's secret key file; it signs nothing here
    #[arg(long, value_name = "FILE.key")]
    pub key: PathBuf,
    /// This site's rows: a file, a folder, a pattern or - [default: `source` under [rows] in site.toml]
    #[arg(long, value_name = "ROWS")]
    pub data: Option<PathBuf>,
    /// The page.
    #[command(flatten)]
    pub print: Print,
}

const NEVER_SENT: [&str; 4] = [
    "any row, or any value of a row",
    "columns that the plan does not name, such as a label column",
    "this site's own number of rows N_l (only the sum over the cohort becomes readable)",
    "this site's own sums in the clear: every vector is masked before it leaves",
];

impl Verb for InspectArgs {
    /// Shows what this site would send.
    ///
    /// # Errors
    /// A [`Failure`] for everything that would also stop the real run before its first message.
    fn run(&self, json: bool) -> Result<(), Failure> {
        let args = self;
        let federation = documents::load_federation(&args.roster, &args.plan)?;
        let (identity, _) = load_identity(&args.key)?;
        let offered = Offered { file: &args.roster, roster: &federation.roster, key: &args.key, identity: &identity };
        let me = offered.whoami()?;
        if !matches!(me, PartyId::Site(_)) {
            return Err(Failure::new(
                Code::Input,
                format!("{}: this is the key of an aggregator, which sends no data", args.key.display()),
                "run this with a site's key",
            ));
        }
        let (site, file) = documents::policy_of(None, Some(&args.key))?;
        let from = site.rows_from(args.data.as_deref(), file.as_deref(), Some(&args.key))?;
        let (rows, _) = documents::load_rows_and_origin(&federation, &from)?;
        let (n, form) = (federation.roster.sites.len(), federation.form()?);
        let cost = Cost::of(&federation)?;
        let mut parts = Vec::new();
        // One question of every part of a run stands for all its rounds.
        for (question, costs) in questions(&federation.work)?.iter().zip(&cost.questions) {
            // The noise of a rehearsal is nobody's: nothing of it leaves.
            let key = Key::from_bytes([0; 32]);
            let terms = Terms { noise: Some(&key), ..Terms::everybody(form) };
            let answer = contribute(question, &*rows, &terms).map_err(|e| {
                let failure = Failure::from(e);
                let next = "speak to the coordinator about the plan".to_owned();
                if failure.advice.is_empty() { Failure { advice: next, ..failure } } else { failure }
            })?;
            let to = if *question == Question::CountRows { PartyId::Intermediary } else { PartyId::Coordinator };
            let rehearsal = rehearse(&federation, to, &question.to_bytes(), answer)?;
            parts.push(Part { to, costs, rehearsal, n, slots: usize::from(slots_of(&federation.terms, to)) });
        }
        // First the coordinator's parts: they are the bulk.
        parts.sort_by_key(|p| p.to);
        let reading = documents::reading_of(&federation, &from)?;
        let report = Report { federation: &federation, me, parts, cost: &cost, reading };
        page::write(&report.page(), args.print.html.as_deref())?;
        crate::verb::print(json, &report.to_json(), &report.to_text())
    }
}

struct Part<'a> {
    to: PartyId,
    costs: &'a QuestionCost,
    rehearsal: Rehearsal,
    n: usize,
    slots: usize,
}

impl Part<'_> {
    /// The frame's size in the real cohort, which may be larger than the rehearsed one.
    fn bytes(&self, sent: &Sent) -> usize {
        let of = |n| frame_bytes(sent.kind, n, self.slots, self.costs.words);
        sent.bytes + of(self.n) - of(self.rehearsal.sites)
    }

    fn total(&self, sent: &[Sent]) -> usize {
        sent.iter().map(|s| self.bytes(s)).sum()
    }

    fn frames(&self, sent: &[Sent]) -> Value {
        sent.iter()
            .map(|s| {
                json!({ "kind": format!("{:?}", s.kind), "bytes": self.bytes(s),
                    "discloses": format!("{:?}", s.discloses), "meaning": s.discloses.explain() })
            })
            .collect()
    }
}

struct Report<'a> {
    federation: &'a Federation,
    me: PartyId,
    parts: Vec<Part<'a>>,
    cost: &'a Cost,
    /// What the plan does with the columns of the file.
    reading: Reading,
}

impl Report<'_> {
    /// Bytes of the greeting, by which a site says who it is and which documents it holds.
    fn hello(&self) -> usize {
        let hello = Hello {
            roster: self.federation.roster.hash(),
            plan: self.federation.terms.hash(),
            software: SOFTWARE.to_owned(),
        };
        let stranger = Identity::generate(&mut system_rng());
        app_messages::frame(&stranger, &app_messages::greeting_session(), Kind::Hello, &hello).len()
    }

    /// Whether anything leaves that could be read, in a sentence.
    fn says(&self) -> String {
        format!(
            "{} would send nothing that can be read: vectors under masks, key shares in sealed boxes, public keys and signatures. \
             What is learnt all the same: the coordinator and every site learn totals over the whole cohort; {}.",
            self.federation.roster.name_of(self.me),
            self.cost.sites_mean()
        )
    }

    fn one_missing(&self, part: &Part<'_>) -> &'static str {
        if self.cost.may_be_missing() > 0 && part.rehearsal.goes_on {
            "the round goes on"
        } else {
            "the run ends: too few sites are left, and nothing is opened"
        }
    }

    fn missing<'p>(&self, part: &'p Part<'_>) -> &'p [Sent] {
        let all = &part.rehearsal.missing;
        // In a smaller rehearsal the round may go on where the real one would not.
        if self.cost.may_be_missing() > 0 { all } else { &all[..all.len().min(1)] }
    }

    fn to_json(&self) -> Value {
        let part = |p: &Part<'_>| {
            let block = |b: &veilsum_node::cost::BlockCost| {
                json!({ "name": b.name, "entries": b.entries, "bits": 64, "fraction_bits": b.fraction_bits,
                    "largest_possible": b.largest, "receiver_learns": "the total over the cohort only" })
            };
            json!({
                "to": self.federation.roster.name_of(p.to),
                "role": format!("{:?}", p.to).to_lowercase(),
                "question": p.costs.name,
                "masked_input": p.costs.blocks.iter().map(block).collect::<Vec<_>>(),
                "deck": p.frames(&p.rehearsal.deck),
                "round": p.frames(&p.rehearsal.round),
                "round_with_one_missing": p.frames(self.missing(p)),
                "one_missing": self.one_missing(p),
                "bytes_per_deck": p.total(&p.rehearsal.deck),
                "bytes_per_round": p.total(&p.rehearsal.round),
            })
        };
        json!({
            "site": self.federation.roster.name_of(self.me),
            "sent": false,
            "says": self.says(),
            "columns_used": self.reading.used,
            "columns_unread": self.reading.ignored,
            "label_kept": self.reading.kept,
            "totals_tell": words::totals_tell(self.federation, self.cost),
            "sites_mean": self.cost.sites_mean(),
            "blocks": self.cost.blocks,
            "rehearsed_sites": self.parts.first().map(|p| p.rehearsal.sites),
            "hello": { "bytes": self.hello(), "meaning": "public key, hashes of roster and plan, software version" },
            "questions": self.parts.iter().map(part).collect::<Vec<_>>(),
            "never_sent": NEVER_SENT,
        })
    }

    fn to_text(&self) -> String {
        let name = |p| self.federation.roster.name_of(p);
        let mut text = format!("{}\n\n{}\n", self.says(), words::columns(&self.reading));
        text += &words::totals(&words::totals_tell(self.federation, self.cost));
        text.push('\n');
        text += &format!(
            "What {} would send. Nothing was sent: a rehearsal of {} sites with throwaway keys; sizes are those \
             for all {}. AdvertiseKeys has 32 bytes more once this site's rows have a block.\n",
            name(self.me),
            self.parts.first().map_or(0, |p| p.rehearsal.sites),
            self.cost.sites
        );
        text += &format!(
            "\nOnce to each aggregator\n\
             \x20 {:<18}{:>10} bytes  public key, hashes of roster and plan, software version\n",
            "Hello",
            self.hello()
        );
        let mut shown = None;
        for p in &self.parts {
            let who = format!("{} ({})", name(p.to), format!("{:?}", p.to).to_lowercase());
            if shown.replace(p.to) != Some(p.to) {
                text += &format!("\nFor every deck of {}, to {who}\n", counted(p.slots, "round"));
                text += &self.lines(p, &p.rehearsal.deck);
            }
            text += &format!("\nFor every {} question of {who}\n", p.costs.name);
            text += &self.lines(p, &p.rehearsal.round);
            text += &format!("  words of the MaskedInput: {}\n", p.costs.words);
            for b in &p.costs.blocks {
                text += &format!(
                    "    {:<16}{:>6} x 64 bits, each at most {:.4e} by the plan; only the cohort's total is learnt\n",
                    b.name, b.entries, b.largest
                );
            }
            text += &format!("  and if one site is missing: {}\n", self.one_missing(p));
            text += &self.lines(p, self.missing(p));
        }
        text += "\nNever sent\n";
        for what in NEVER_SENT {
            text += &format!("  {what}\n");
        }
        text
    }

    fn page(&self) -> Page {
        let name = |p| self.federation.roster.name_of(p);
        let mut page = Page::new(&format!("What {} would send", name(self.me)));
        page.says(&self.says()).part("Columns");
        page.table(
            &["columns", "names"],
            words::columns_of(&self.reading).map(|(what, names)| [what.to_owned(), names]),
        );
        page.part("What totals can tell").list(words::totals_tell(self.federation, self.cost));
        page.part("What would leave, masked").paragraph(
            "Nothing was sent. Each number leaves behind masks, and only the total over the cohort is learnt.",
        );
        let blocks = self.parts.iter().flat_map(|p| p.costs.blocks.iter().map(move |b| (p, b)));
        page.table(
            &["to", "question", "what", "numbers of 64 bits", "each at most"],
            blocks.map(|(p, b)| {
                let largest = format!("{:.4e}", b.largest);
                [name(p.to).to_owned(), p.costs.name.to_owned(), b.name.to_owned(), b.entries.to_string(), largest]
            }),
        );
        page.part("Messages");
        let decks = |p: &Part<'_>| format!("once for {} of {}", counted(p.slots, "round"), name(p.to));
        let rounds = |p: &Part<'_>| format!("for every {} question of {}", p.costs.name, name(p.to));
        let mut frames: Vec<[String; 4]> = Vec::new();
        for p in &self.parts {
            for (when, sent) in [(decks(p), &p.rehearsal.deck), (rounds(p), &p.rehearsal.round)] {
                let row = |s: &Sent| {
                    [when.clone(), format!("{:?}", s.kind), p.bytes(s).to_string(), s.discloses.explain().to_string()]
                };
                frames.extend(sent.iter().map(row).filter(|row| !frames.contains(row)).collect::<Vec<_>>());
            }
        }
        page.table(&["when", "message", "bytes", "what it discloses"], frames);
        page.part("Never sent").list(NEVER_SENT);
        page
    }

    fn lines(&self, part: &Part<'_>, sent: &[Sent]) -> String {
        let mut text = String::new();
        for s in sent {
            let kind = format!("{:?}", s.kind);
            text += &format!("  {kind:<18}{:>10} bytes  {:?}: {}\n", part.bytes(s), s.discloses, s.discloses.explain());
        }
        text + &format!("  {:<18}{:>10} bytes\n", "together", part.total(sent))
    }
}

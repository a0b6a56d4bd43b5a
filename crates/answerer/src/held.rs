//! A conversation with an answerer over a whole run, in which nothing is believed that can be checked.

use std::collections::BTreeSet;

use serde::Serialize;
use veilsum_cluster::{Batch, Domain};

use crate::{
    contract::{
        Answer, Ask, AskedBlock, FromAnswerer, FromSite, Hello, MAX_REASONS, MAX_TEXT, PROTOCOL, Ready, Refusal,
        WORD_BYTES, blocks_of, kind_of, tame,
    },
    counts,
    fault::Fault,
    process::{Launch, Process},
};

/// Bytes of a line beside its words, at most; also of the answer to `hello`, which has texts of every column.
const FRAME: usize = 1 << 20;

/// An answerer that was asked who it is, and holds the rows of a run.
pub struct Held {
    launch: Launch,
    hello: Hello,
    domain: Domain,
    ready: Ready,
    /// None after an end that could not be mended.
    process: Option<Process>,
    next: u64,
}

impl Held {
    /// Starts it and lets it open its rows.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn start(launch: Launch, hello: Hello) -> Result<Self, Fault> {
        let domain = hello.domain().map_err(|e| Fault::Question(e.to_string()))?;
        let (process, ready) = begin(&launch, &hello)?;
        let held = Self { launch, hello, domain, ready, process: Some(process), next: 1 };
        match held.unusable() {
            Some(fault) if !held.hello.noise => Err(fault),
            _ => Ok(held),
        }
    }

    /// What there is to say of rows that cannot be used; for their owner alone.
    pub fn unusable(&self) -> Option<Fault> {
        let all = self.ready.unusable();
        let rows = if all == 1 { "one row".into() } else { format!("{all} rows") };
        let reasons: Vec<String> = self.ready.bad.iter().map(|(why, n)| format!("{} ({n})", tame(why))).collect();
        let what = format!("{rows} that cannot be used: {}", reasons.join(", "));
        (all > 0).then(|| Fault::BadRows(self.launch.program(), what))
    }

    /// What it is and holds.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// The public box.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Whether it answers all these kinds.
    ///
    /// # Errors
    /// [`Fault::Kinds`] with those that it does not.
    pub fn covers<'a>(&self, kinds: impl IntoIterator<Item = &'a str>) -> Result<(), Fault> {
        let missing: BTreeSet<&str> =
            kinds.into_iter().filter(|kind| !self.ready.kinds.iter().any(|k| k == kind)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let kinds = missing.into_iter().collect::<Vec<_>>().join(", ");
        Err(Fault::Kinds(self.launch.program(), kinds))
    }

    /// The words of its rows for this question: as many as `steps` say in all, each block with its fraction bits. A process that
    /// ended or does not answer is started again and asked once more.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn words(&mut self, batch: &Batch, steps: &[(usize, i32)]) -> Result<Vec<i64>, Fault> {
        self.covers(batch.queries.iter().map(kind_of))?;
        let blocks =
            blocks_of(batch, &self.domain, steps, self.ready.rows).map_err(|e| Fault::Question(e.to_string()))?;
        match self.once(batch, &blocks) {
            Err(fault) if fault.is_passing() => {
                (self.launch.log)(&format!("{fault}; it is started again and asked once more"));
                self.process = None;
                self.once(batch, &blocks)
            }
            other => other,
        }
        .inspect_err(|_| self.process = None)
    }

    fn once(&mut self, batch: &Batch, blocks: &[AskedBlock]) -> Result<Vec<i64>, Fault> {
        if self.process.is_none() {
            let (process, ready) = begin(&self.launch, &self.hello)?;
            self.same_rows(&ready)?;
            self.process = Some(process);
        }
        let program = self.launch.program();
        let contract = |what: &str| Fault::Contract(program.clone(), what.into());
        let Some(process) = &mut self.process else { return Err(contract("it is not there")) };
        if process.unasked() {
            return Err(contract("it says something that nobody asked for"));
        }
        let id = self.next;
        self.next += 1;
        let ask = Ask { id, question: batch.clone(), blocks: blocks.to_vec() };
        process.say(line(&FromSite::Ask(ask)));
        let words: usize = blocks.iter().map(|block| block.len).sum();
        let most = FRAME + words.saturating_mul(WORD_BYTES);
        match said(&program, &process.hear(most, self.launch.limit)?)? {
            FromAnswerer::Answer(answer) if answer.id == id => self.check(batch, blocks, words, answer),
            FromAnswerer::Answer(_) => Err(contract("it answers another question than it was asked")),
            FromAnswerer::Error(refusal) if refusal.id.is_some_and(|of| of != id) => {
                Err(contract("it refuses another question than it was asked"))
            }
            FromAnswerer::Error(refusal) => Err(refused(program, refusal)),
            FromAnswerer::Ready(_) => Err(contract("`ready` comes once")),
        }
    }

    /// Whether this is an answer to this question, of so many words, that the rows of `ready` can have.
    fn check(&self, batch: &Batch, blocks: &[AskedBlock], len: usize, answer: Answer) -> Result<Vec<i64>, Fault> {
        let changed = |what: &str| Err(Fault::Changed(self.launch.program(), what.into()));
        let wrong = |what: String| Err(Fault::Wrong(self.launch.program(), what));
        if answer.rows != self.ready.rows {
            return changed("there is another number of them");
        }
        if answer.fingerprint != self.ready.fingerprint.rows {
            return changed("their fingerprint is another one");
        }
        if answer.bad != self.ready.unusable() {
            return changed("another number of them cannot be used now");
        }
        if answer.words.len() != len {
            return wrong(format!("it has {} words, and the question has {len}", answer.words.len()));
        }
        let words: Vec<i64> = answer.words.iter().map(|word| word.0).collect();
        let mut rest = words.iter();
        for block in blocks {
            if rest.by_ref().take(block.len).any(|word| word.unsigned_abs() > block.limit) {
                return wrong(format!(
                    "an entry of {:?} is larger than rows inside the plan's box can make it",
                    block.name
                ));
            }
        }
        match counts::wrong(batch, &self.domain, blocks, self.ready.rows, &words) {
            Some(block) => wrong(format!("the counts of {block:?} do not add up to the rows")),
            None => Ok(words),
        }
    }

    fn same_rows(&self, ready: &Ready) -> Result<(), Fault> {
        let what = match ready {
            _ if ready.rows != self.ready.rows => "there is another number of them",
            _ if ready.fingerprint != self.ready.fingerprint => "their fingerprint is another one",
            _ if ready.bad != self.ready.bad => "others cannot be used",
            _ => return Ok(()),
        };
        Err(Fault::Changed(self.launch.program(), format!("{what} after it was started again")))
    }

    /// Says goodbye, as it does when it is dropped; the exit code where the process ended by itself.
    pub fn end(mut self) -> Option<i32> {
        self.goodbye()
    }

    fn goodbye(&mut self) -> Option<i32> {
        let process = self.process.take()?;
        process.say(line(&FromSite::End));
        process.end()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.goodbye();
    }
}

/// Starts a process and greets it.
fn begin(launch: &Launch, hello: &Hello) -> Result<(Process, Ready), Fault> {
    let program = launch.program();
    let contract = |what: &str| Err(Fault::Contract(program.clone(), what.into()));
    let mut process = Process::start(launch)?;
    process.say(line(&FromSite::Hello(hello.clone())));
    let ready = match said(&program, &process.hear(FRAME, launch.start)?)? {
        FromAnswerer::Ready(ready) => ready,
        FromAnswerer::Error(refusal) => return Err(refused(program, refusal)),
        FromAnswerer::Answer(_) => return contract("it answers before it was asked"),
    };
    let columns = hello.names().count();
    if ready.protocol != PROTOCOL {
        let what = format!("it speaks version {} of the contract, and this is version {PROTOCOL}", ready.protocol);
        return contract(&what);
    }
    if !ready.fingerprint.is_well_formed(columns) {
        return contract("its fingerprint is not 16 to 128 hexadecimal digits for the rows and for every column");
    }
    let long = [&ready.name, &ready.version].into_iter().chain(ready.bad.keys()).any(|text| text.len() > MAX_TEXT);
    if long || ready.bad.len() > MAX_REASONS || ready.bad.values().any(|n| *n == 0) {
        return contract("its name, its version or its reasons for bad rows are too long, or a reason has no row");
    }
    Ok((process, ready))
}

/// A line for the process.
pub(crate) fn line(what: &impl Serialize) -> Vec<u8> {
    // Plain structures of numbers and texts always have a form in JSON.
    serde_json::to_vec(what).unwrap_or_default()
}

fn said(program: &str, line: &[u8]) -> Result<FromAnswerer, Fault> {
    // The parser's own words would quote the line, which may hold anything.
    serde_json::from_slice(line).map_err(|e| {
        let what = format!("a line is no object of the contract (at byte {} of it)", e.column());
        Fault::Contract(program.to_owned(), what)
    })
}

fn refused(program: String, refusal: Refusal) -> Fault {
    Fault::Refused(program, Refusal { message: tame(&refusal.message), next: tame(&refusal.next), ..refusal })
}

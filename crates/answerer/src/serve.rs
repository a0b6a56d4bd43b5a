//! An answerer's end of the conversation: lines in, lines out, and every line that the contract does not have is refused.

use std::io::{self, Write};

use veilsum_cluster::Batch;

use crate::{
    contract::{
        Answer, AskedBlock, FromAnswerer, FromSite, Hello, MAX_LINE, PROTOCOL, Ready, Refusal, RefusalCode, Word,
        blocks_of, kind_of,
    },
    process::lines,
};

pub use crate::process::Line;

/// What an answerer computes.
pub trait Engine {
    /// Opens the rows.
    ///
    /// # Errors
    /// A [`Refusal`] with the next step.
    fn open(&mut self, hello: &Hello) -> Result<Ready, Refusal>;

    /// The words of the rows, block by block; the question fits the box, is of a kind that [`Ready`] lists, and has these blocks.
    ///
    /// # Errors
    /// A [`Refusal`] with the next step.
    fn words(&mut self, batch: &Batch, blocks: &[AskedBlock]) -> Result<Vec<i64>, Refusal>;
}

/// Answers until the site says `end` or its lines end. A line that cannot be used is refused, and the conversation goes on.
///
/// # Errors
/// That of the output, or [`Refusal`] where the engine says that it was told to stop.
pub fn serve(engine: &mut dyn Engine, lines: impl IntoIterator<Item = Line>, out: &mut impl Write) -> io::Result<()> {
    let mut open: Option<(Hello, Ready)> = None;
    for line in lines {
        let reply = match read(line) {
            Ok(FromSite::End) => return Ok(()),
            Ok(FromSite::Hello(_)) if open.is_some() => {
                Err(Refusal::new(RefusalCode::Protocol, "`hello` comes once", "end the process and start another one"))
            }
            Ok(FromSite::Hello(hello)) => greet(engine, hello, &mut open),
            Ok(FromSite::Ask(ask)) => answer(engine, &ask.question, &ask.blocks, open.as_ref(), ask.id)
                .map_err(|r| Refusal { id: Some(ask.id), ..r }),
            Err(refusal) => Err(refusal),
        };
        let stop = matches!(&reply, Err(refusal) if refusal.code == RefusalCode::Cancelled);
        let reply = reply.unwrap_or_else(FromAnswerer::Error);
        serde_json::to_writer(&mut *out, &reply)?;
        out.write_all(b"\n")?;
        out.flush()?;
        if stop {
            return Ok(());
        }
    }
    Ok(())
}

fn read(line: Line) -> Result<FromSite, Refusal> {
    let line = line.map_err(|most| {
        Refusal::new(RefusalCode::Protocol, format!("a line has more than {most} bytes"), "ask less at a time")
    })?;
    serde_json::from_slice(&line).map_err(|e| {
        let what = format!("a line is no object of the contract (at byte {} of it)", e.column());
        Refusal::new(RefusalCode::Protocol, what, "keep to the contract: docs/src/answerers.md")
    })
}

fn greet(engine: &mut dyn Engine, hello: Hello, open: &mut Option<(Hello, Ready)>) -> Result<FromAnswerer, Refusal> {
    if hello.protocol != PROTOCOL {
        let what =
            format!("this answerer speaks version {PROTOCOL} of the contract, the site version {}", hello.protocol);
        return Err(Refusal::new(RefusalCode::Version, what, "install the answerer of the same release as the site"));
    }
    if let Err(e) = hello.domain() {
        let what = format!("the columns of `hello` are no box: {e}");
        return Err(Refusal::new(RefusalCode::Protocol, what, "send a plan's columns"));
    }
    let ready = engine.open(&hello)?;
    *open = Some((hello, ready.clone()));
    Ok(FromAnswerer::Ready(ready))
}

fn answer(
    engine: &mut dyn Engine,
    batch: &Batch,
    blocks: &[AskedBlock],
    open: Option<&(Hello, Ready)>,
    id: u64,
) -> Result<FromAnswerer, Refusal> {
    let protocol =
        |what: &str| Refusal::new(RefusalCode::Protocol, what, "keep to the contract: docs/src/answerers.md");
    let (hello, ready) = open.ok_or_else(|| protocol("`ask` comes after `hello`"))?;
    if let Some(kind) = batch.queries.iter().map(kind_of).find(|kind| !ready.kinds.iter().any(|known| known == kind)) {
        let what = format!("questions of the kind {kind} are not answered here");
        return Err(Refusal::new(RefusalCode::Kind, what, "ask only what `ready` lists"));
    }
    let domain = hello.domain().map_err(|e| protocol(&e.to_string()))?;
    batch.check(&domain).map_err(|e| protocol(&e.to_string()))?;
    let steps: Vec<(usize, i32)> = blocks.iter().map(|block| (block.len, block.fraction_bits)).collect();
    let known = blocks_of(batch, &domain, &steps, ready.rows).map_err(|e| protocol(&e.to_string()))?;
    // Contributions are to stay below 2^51 steps, where rounding them is exact.
    let usable = |block: &AskedBlock| (-1100..=1100).contains(&block.fraction_bits);
    if known.iter().zip(blocks).any(|(known, asked)| known.name != asked.name || !usable(known)) {
        return Err(protocol("the blocks are not those of the question"));
    }
    let words = engine.words(batch, &known)?;
    if words.len() != known.iter().map(|block| block.len).sum::<usize>() {
        let what = "an answer has another length than its question";
        return Err(Refusal::new(RefusalCode::Internal, what, "report this defect"));
    }
    let words = words.into_iter().map(Word).collect();
    let fingerprint = ready.fingerprint.rows.clone();
    Ok(FromAnswerer::Answer(Answer { id, rows: ready.rows, bad: ready.unusable(), fingerprint, words }))
}

/// The lines of a reader, of [`MAX_LINE`] bytes at most; they end where one is longer or the reader fails.
pub fn lines_of(reader: impl io::BufRead) -> impl Iterator<Item = Line> {
    lines(reader, || MAX_LINE)
}

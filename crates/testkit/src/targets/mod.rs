//! What is fed with hostile bytes: every decoder, and both state machines. A target panics where something is wrong.

mod decoders;
pub mod honest;
mod machines;
mod opened;

/// Something that takes any bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Takes the bytes.
    pub run: fn(&[u8]),
    /// How many random inputs the quick test gives it.
    pub quick: usize,
}

const fn target(name: &'static str, run: fn(&[u8]), quick: usize) -> Target {
    Target { name, run, quick }
}

/// Every target.
pub const ALL: [Target; 19] = [
    target("header", decoders::header, 4_000),
    target("message", decoders::message, 4_000),
    target("codec", decoders::codec, 2_000),
    target("record", decoders::record, 2_000),
    target("journal", decoders::journal::<veilsum_proto::journal::Record>, 100),
    target("terms", decoders::terms, 2_000),
    target("roster", decoders::roster, 2_000),
    target("work", decoders::work, 1_000),
    target("documents", decoders::documents, 200),
    target("key", decoders::key, 200),
    target("csv", decoders::csv, 2_000),
    target("model", decoders::model, 500),
    target("batch", decoders::batch, 1_000),
    target("question", decoders::question, 1_000),
    target("carrier", decoders::carrier, 4_000),
    target("opened", opened::frames, 400),
    target("transcript", decoders::journal::<veilsum_node::store::Told>, 200),
    target("site", machines::site, 40),
    target("aggregator", machines::aggregator, 40),
];

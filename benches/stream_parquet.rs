//! What streaming costs a site: rows of Parquet in a folder of their own, decoded alone, answered from as they stream, and answered from in
//! memory. `cargo bench --bench stream_parquet -- ROWS [ROWS IN MEMORY] [K] [ROUNDS]`
//!
//! Time is by row, on the wall and of the processor over all threads, which other programs on the machine disturb less; memory is the most
//! that the process held at the end of each part (Linux). The rows in memory are fewer, so that they fit, and their time by row is what
//! streaming is compared with.

use std::{fs, path::Path, sync::Arc, time::Instant};

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};
use veilsum_cluster::{Centres, Domain, Prepared, Query, Rows, Scaling, SumStep};
use veilsum_node::{
    answerer::Answerer,
    plan::OutOfBox,
    question::Batch,
    table::{self, Batches, Checked, Reader, TableSpec},
};

const COLUMNS: usize = 16;
/// Rows of a file.
const FILE: usize = 5_000_000;
/// Rows of a row group.
const GROUP: usize = 1 << 17;
/// Bytes that streaming may take.
const MEMORY: u64 = 512 << 20;

fn main() {
    let mut numbers =
        std::env::args().skip(1).filter(|arg| arg != "--bench").map(|arg| arg.parse::<usize>().expect("a number"));
    let rows = numbers.next().unwrap_or(1_000_000);
    let held = numbers.next().unwrap_or(2_000_000).min(rows);
    let (k, rounds) = (numbers.next().unwrap_or(10), numbers.next().unwrap_or(3));
    let folder = std::env::temp_dir().join(format!("veilsum-stream-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let begun = Instant::now();
    let bytes = write(&folder, rows);
    println!(
        "{rows} rows x {COLUMNS} of Parquet: {} MB, written in {:.1} s",
        bytes >> 20,
        begun.elapsed().as_secs_f64()
    );

    let names: Vec<String> = (0..COLUMNS).map(|j| format!("c{j}")).collect();
    let domain = Domain::new(vec![0.0; COLUMNS], vec![1.0; COLUMNS], Scaling::Box).expect("a box");
    let spec = TableSpec { columns: names, within: vec![(0.0, 1.0); COLUMNS], ..TableSpec::default() };
    let centres =
        (0..k).map(|i| (0..COLUMNS).map(|j| ((i * 7 + j * 3) % 11) as f64 / 11.0 + 0.01).collect()).collect::<Vec<_>>();
    let batch: Batch = Query::fuzzy_sums(Centres::from_rows(&centres).expect("centres"), 2.0).into();
    let steps: Vec<SumStep> = batch
        .layout(&domain)
        .expect("a layout")
        .iter()
        .map(|block| SumStep { len: block.len, fraction_bits: 30 })
        .collect();

    let took = |what: &str, rows: usize, (begun, before): (Instant, f64)| {
        let by_row = |seconds: f64| seconds * 1e9 / rows as f64;
        let each = [by_row(begun.elapsed().as_secs_f64()), by_row(processor() - before)];
        let most = peak() >> 10;
        println!(
            "{what:<46} {:>7.1} ns a row, {:>7.1} of the processor   {most:>6} MB at most so far",
            each[0], each[1]
        );
        each
    };
    let now = || (Instant::now(), processor());
    let begun = now();
    let mut batches = Batches::new(table::open(&folder, spec.rules.dialect()).expect("rows"), &spec).expect("columns");
    while batches.more(1 << 16).expect("rows") {
        batches.table().drain();
    }
    drop(batches);
    let decoded = took("decoded and checked alone", rows, begun);

    let reader = Arc::new(Reader::new(&folder, spec.clone(), COLUMNS, MEMORY).expect("random numbers"));
    let begun = now();
    let checked = Checked::begin(reader, &domain, OutOfBox::Refuse).expect("rows");
    let streamed = checked.streamed().expect("rows");
    took("first two passes: checks, fingerprint, digest", rows, begun);
    let begun = now();
    let mut words = Vec::new();
    for _ in 0..rounds {
        words = streamed.words(&batch, &steps).expect("words");
    }
    let streaming = took("streamed, a round", rows * rounds, begun);

    // The first files, in memory.
    let mut batches = Batches::new(table::open(&folder, spec.rules.dialect()).expect("rows"), &spec).expect("columns");
    while batches.table().rows < held && batches.more(1 << 16).expect("rows") {}
    let (mut values, _) = batches.table().drain();
    values.truncate(held * COLUMNS);
    let values = Rows::new(values, COLUMNS).expect("rows");
    let prepared = Prepared::new(&values, &domain, OutOfBox::Refuse).expect("rows in the box");
    drop(values);
    let own = Answerer::words(&prepared, &batch, &steps).expect("words");
    let begun = now();
    for _ in 0..rounds {
        Answerer::words(&prepared, &batch, &steps).expect("words");
    }
    let memory = took("in memory, a round", held * rounds, begun);
    if held == rows {
        assert_eq!(own, words, "the same words");
        println!("the same words");
    }
    for (of, i) in [("on the wall", 0), ("of the processor", 1)] {
        let (all, apart) = (streaming[i] / memory[i], (streaming[i] - decoded[i]).max(0.0) / memory[i]);
        println!("streamed / in memory, {of}: {all:.2}; with decoding apart: {apart:.2}");
    }
    fs::remove_dir_all(&folder).expect("the folder goes");
}

fn write(folder: &Path, rows: usize) -> u64 {
    let mut state = 1u64;
    let mut next = move || {
        // A cheap sequence (Steele & Vigna 2021): these rows are no secret.
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (state >> 32) as f64 / (1u64 << 32) as f64
    };
    let names: Vec<String> = (0..COLUMNS).map(|j| format!("c{j}")).collect();
    let mut bytes = 0;
    for (file, from) in (0..rows).step_by(FILE).enumerate() {
        let path = folder.join(format!("part-{file:04}.parquet"));
        let mut writer = None;
        for start in (from..rows.min(from + FILE)).step_by(GROUP) {
            let len = GROUP.min(rows.min(from + FILE) - start);
            let columns = names.iter().map(|name| {
                // Four digits, as measurements have.
                let values: Vec<f64> = (0..len).map(|_| (next() * 1e4).round() / 1e4).collect();
                (name.as_str(), Arc::new(Float64Array::from(values)) as ArrayRef)
            });
            let batch = RecordBatch::try_from_iter(columns.collect::<Vec<_>>()).expect("columns");
            let writer = writer.get_or_insert_with(|| {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::SNAPPY)
                    .set_max_row_group_row_count(Some(GROUP))
                    .build();
                let file = fs::File::create(&path).expect("a file");
                ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a writer")
            });
            writer.write(&batch).expect("room");
        }
        writer.map(|writer| writer.close().expect("room"));
        bytes += fs::metadata(&path).expect("a file").len();
    }
    bytes
}

/// Seconds of the processor that this process took, over all its threads (Linux: ticks of a hundredth).
fn processor() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    numbers.get(11..13).map_or(0.0, |of| of.iter().filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

/// The most memory that this process held, in kB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or(0)
}

//! Typed files as other writers make them, whole and damaged. What their values are is in the folder of cases.

use std::{fs, sync::Arc};

use ::parquet::{
    basic::Compression,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter},
};
use arrow_array::{ArrayRef, Date32Array, Decimal128Array, Float64Array, RecordBatch, StructArray};
use arrow_ipc::{CompressionType, MetadataVersion, writer::IpcWriteOptions};
use arrow_schema::{DataType, Field};

use super::{
    super::*,
    forms::{
        arrow_file as arrow, arrow_stream_of, columns_of, forms, named, parquet, parquet_with, read_bytes, told, typed,
    },
};
use crate::{documents::tests::Folder, plan::Categorical};

/// Of `x`, and the codes `a` and `b` in `c`.
fn with_codes() -> TableSpec {
    let categories = vec!["a".to_owned(), "b".to_owned()];
    TableSpec { categorical: vec![Categorical { column: "c".into(), categories, weight: 1.0 }], ..named(&["x"]) }
}

/// A header is read alone; one of numbers may be a row, and is one of names where all that is asked for is among it.
#[test]
fn headers_are_read_alone() {
    let folder = Folder::new("header");
    let path = folder.at("rows");
    let header = |asked: &[&str]| read_header(&path, Dialect::default(), asked.iter().copied());
    fs::write(&path, "cafe\u{301},x\n1,2\n").unwrap();
    assert_eq!(header(&[]).unwrap(), ["caf\u{e9}", "x"]);
    fs::write(&path, "country,2019,2020\nA,1,2\nB,3,4\n").unwrap();
    assert_eq!(header(&["2019"]).unwrap(), ["country", "2019", "2020"]);
    assert!([&["2021"][..], &["2019", "age"], &[]].iter().all(|asked| header(asked).is_err()));
    for bytes in typed(&columns_of("0,1\n1,1\n3,3\n", "float float")) {
        assert_eq!(read_bytes(bytes, &named(&[])).unwrap().columns, ["0", "1"]);
    }
}

/// Files as other programs write them: old ones without a mark before a message, ones whose dictionaries come in between, packed ones.
#[test]
fn arrow_files_are_read_by_their_end() {
    let all = columns_of("x,c,i\n1,b,1\n2,a,2\n3,b,3\n4,a,4\n", "float codes int");
    let spec = with_codes();
    let options = |alignment, legacy, version| IpcWriteOptions::try_new(alignment, legacy, version).unwrap();
    let expected = [1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 3.0, 0.0, 1.0, 4.0, 1.0, 0.0];
    for bytes in [
        arrow(&all, options(8, true, MetadataVersion::V4)),
        arrow(&all, options(64, true, MetadataVersion::V4)),
        arrow(&all, options(8, false, MetadataVersion::V4)),
        arrow(&all, options(64, false, MetadataVersion::V5)),
        arrow(&all, IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap()),
    ] {
        assert_eq!(read_bytes(&bytes, &spec).unwrap().values, expected);
        // What stands before the messages plays no part, and what their end says has to be there.
        let mut other = bytes.clone();
        other[8..16].fill(0x41);
        assert_eq!(read_bytes(&other, &spec).unwrap().values, expected);
    }
    let packed = zstd::encode_all(&arrow(&all, IpcWriteOptions::default())[..], 1).unwrap();
    assert!(told(packed, &spec).contains("read from its end"));
}

/// A Parquet file whose columns are said to be others.
fn changed(bytes: &[u8], of: impl Fn(ColumnChunkMetaData) -> ColumnChunkMetaData) -> Vec<u8> {
    let length = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap()) as usize;
    let body = bytes.len() - 8 - length;
    let about = ParquetMetaDataReader::decode_metadata(&bytes[body..bytes.len() - 8]).unwrap();
    let groups = about.row_groups().iter().map(|group| {
        let mut builder = group.clone().into_builder();
        let columns = builder.take_columns().into_iter().map(&of).collect();
        builder.set_column_metadata(columns).build().unwrap()
    });
    let groups = groups.collect();
    let about: ParquetMetaData = about.clone().into_builder().set_row_groups(groups).build();
    let mut out = bytes[..body].to_vec();
    ParquetMetaDataWriter::new(&mut out, &about).finish().unwrap();
    out
}

#[test]
fn what_a_column_is_packed_by_is_named_where_it_is_wanted() {
    let bytes = parquet(&[columns_of("x,y\n1,1\n2,2\n", "float float")], Compression::UNCOMPRESSED);
    for (packing, name) in [(Compression::BROTLI(Default::default()), "brotli"), (Compression::LZO, "LZO")] {
        let other = changed(&bytes, |chunk| match chunk.column_path().string() == "y" {
            true => chunk.into_builder().set_compression(packing).build().unwrap(),
            false => chunk,
        });
        let error = told(&other, &named(&["x", "y"]));
        assert!(error.contains(&format!("\"y\" is packed by {name}")) && error.contains("zstd"), "{error}");
        assert_eq!(read_bytes(&other, &named(&["x"])).unwrap().values, [1.0, 2.0]);
    }
}

#[test]
fn a_dictionary_that_is_said_to_be_at_the_begin_of_the_file_is_none() {
    let properties = ::parquet::file::properties::WriterProperties::builder().set_dictionary_enabled(false).build();
    let bytes = parquet_with(&[columns_of("x\n1\n2\n", "float")], properties);
    let zero = |chunk: ColumnChunkMetaData| chunk.into_builder().set_dictionary_page_offset(Some(0)).build().unwrap();
    assert_eq!(read_bytes(changed(&bytes, zero), &named(&["x"])).unwrap().values, [1.0, 2.0]);
}

/// Batches with columns of every kind.
fn shapes() -> Vec<RecordBatch> {
    let rows = 40;
    let numbers: ArrayRef = Arc::new((0..rows).map(|i| (i % 7 > 0).then_some(f64::from(i))).collect::<Float64Array>());
    let decimals = Decimal128Array::from_iter_values((0..rows).map(|i| i128::from(i) * 1_000_003));
    let part = Arc::new(Field::new("part", DataType::Float64, true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(part, numbers.clone())]));
    let words = (0..rows).fold("c,t\n".to_owned(), |text, i| {
        let code = ["", "a", "b"][if i % 5 > 0 { 1 + i as usize % 2 } else { 0 }];
        text + &if i % 3 > 0 { format!("{code},word {i}\n") } else { format!("{code},\n") }
    });
    let words = columns_of(&words, "codes text");
    let all = RecordBatch::try_from_iter_with_nullable([
        ("x", numbers, true),
        ("c", words.column(0).clone(), true),
        ("t", words.column(1).clone(), true),
        ("d", Arc::new(decimals.with_precision_and_scale(20, 3).unwrap()), true),
        ("day", Arc::new(Date32Array::from_iter_values(0..rows)), true),
        ("n", nested, true),
    ]);
    let all = all.unwrap();
    vec![all.slice(0, 25), all.slice(25, 0), all.slice(25, 15)]
}

/// Bytes that are changed, cut out or put in twice make an error or other rows: no panic, and no memory without bounds.
/// `VEILSUM_MUTATIONS=1000000 cargo test -p veilsum-node --features columnar --lib mutated -- --nocapture` tries more of them.
#[test]
fn mutated_files_do_no_harm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let mut state = number("VEILSUM_SEED").unwrap_or(u64::from(std::process::id()) | 1);
    println!("seed {state}");
    let rounds = number("VEILSUM_MUTATIONS").unwrap_or(2_000) as usize;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let shapes = shapes();
    let packing = |of| IpcWriteOptions::default().try_with_compression(Some(of)).unwrap();
    let mut files = vec![
        parquet(&shapes, Compression::SNAPPY),
        parquet(&shapes, Compression::UNCOMPRESSED),
        arrow(&shapes[0], IpcWriteOptions::default()),
        arrow(&shapes[0], packing(CompressionType::LZ4_FRAME)),
        arrow(&shapes[0], packing(CompressionType::ZSTD)),
        arrow_stream_of(&shapes[..1]),
    ];
    files.extend(forms().into_iter().map(|(_, bytes)| bytes));
    let label = TableSpec { label: Some("t".into()), ..named(&["x"]) };
    let specs = [with_codes(), named(&["x", "d"]), label, named(&["weight", "age", "cost"])];
    for round in 0..rounds {
        let mut bytes = files[round % files.len()].clone();
        for _ in 0..1 + random(4) {
            // The description is at one of the ends, and more is decided there.
            let span = if random(3) == 0 { bytes.len() } else { bytes.len().min(1500) };
            let at = random(span);
            let at = if random(2) == 0 { at } else { bytes.len() - 1 - at };
            match random(5) {
                0 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random(5)],
                1 => bytes[at] ^= 1 << random(8),
                2 => bytes[at] = random(256) as u8,
                3 => drop(bytes.drain(at..(at + 1 + random(8)).min(bytes.len()))),
                _ => {
                    let part = bytes[at..(at + 1 + random(16)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        for spec in &specs {
            if let Err(error) = read_bytes(&bytes, spec) {
                assert!(!error.advice().is_empty(), "{error}");
            }
        }
    }
}

/// Bytes that are gone from the middle of an Arrow file, or came to it, are told: no number is read from elsewhere.
#[test]
fn bytes_missing_from_the_middle_of_arrow_are_told() {
    let rows = (0..40).map(f64::from).map(|i| format!("{i},{},{}\n", -2.0 * i, 0.5 * i));
    let all = columns_of(&format!("x,y,z\n{}", rows.collect::<String>()), "float float float");
    let legacy = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
    for (form, bytes) in [
        ("file", arrow(&all, IpcWriteOptions::default())),
        ("legacy", arrow(&all, legacy)),
        ("stream", arrow_stream_of(std::slice::from_ref(&all))),
    ] {
        let whole = read_bytes(&bytes, &named(&["x", "y", "z"])).unwrap_or_else(|e| panic!("{form}: {e}")).values;
        let mut read_on = 0;
        for at in (8..bytes.len() - 8).step_by(4) {
            for gone in [1, 4, 8, 16, 64, 320] {
                let mut cut = bytes.clone();
                cut.drain(at..(at + gone).min(bytes.len()));
                let more = [&bytes[..at], &bytes[at.saturating_sub(gone)..]].concat();
                for changed in [cut, more] {
                    if let Ok(table) = read_bytes(&changed, &named(&["x", "y", "z"])) {
                        // What stands before the messages of a file plays no part.
                        assert_eq!(table.values, whole, "{form}: {gone} bytes at {at}");
                        read_on += 1;
                    }
                }
            }
        }
        println!("{form}: {read_on} of these were read as before");
    }
}

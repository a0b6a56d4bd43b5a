//! One data set in every form that is read, and what is wrong with files of them.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StringArray,
    types::{Float64Type, Int32Type},
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};

use super::super::*;
use crate::{documents::tests::Folder, plan::Categorical};

/// The same rows as text and as typed columns: whole numbers, decimals, a category, a missing value, a yes or no, a column nobody asks for.
const TEXT: &str = "id,age,weight,smoker,cost,ill\n1,40,71.25,no,10.01,true\n2,50,80.5,yes,-0.10,false\n3,,60,no,3,true\n4,61,99,yes,12.34,false\n";

fn batch() -> RecordBatch {
    let column = |array: ArrayRef| array;
    RecordBatch::try_from_iter([
        ("id", column(Arc::new(Int64Array::from(vec![1, 2, 3, 4])))),
        ("age", column(Arc::new(Int32Array::from(vec![Some(40), Some(50), None, Some(61)])))),
        ("weight", column(Arc::new(Float64Array::from(vec![71.25, 80.5, 60.0, 99.0])))),
        ("smoker", column(Arc::new(StringArray::from(vec!["no", "yes", "no", "yes"])))),
        (
            "cost",
            column(Arc::new(Decimal128Array::from(vec![1001, -10, 300, 1234]).with_precision_and_scale(9, 2).unwrap())),
        ),
        ("ill", column(Arc::new(BooleanArray::from(vec![true, false, true, false])))),
    ])
    .unwrap()
}

fn spec() -> TableSpec {
    let of = |column: &str, categories: [&str; 2]| Categorical {
        column: column.into(),
        categories: categories.map(str::to_owned).to_vec(),
        weight: 1.0,
    };
    let columns = ["weight", "age", "cost"].map(str::to_owned).to_vec();
    let rules = RowRules {
        missing: Some(Missing::LeaveOut),
        columns: [("age".to_owned(), "age".to_owned())].into(),
        ..RowRules::default()
    };
    let categorical = vec![of("smoker", ["no", "yes"]), of("ill", ["false", "true"])];
    TableSpec { columns, categorical, rules: Arc::new(rules), ..TableSpec::default() }
}

pub(in crate::table) fn parquet(batches: &[RecordBatch], packing: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    let properties = WriterProperties::builder().set_compression(packing).set_max_row_group_row_count(Some(3)).build();
    let mut writer = ArrowWriter::try_new(&mut out, batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.close().unwrap();
    out
}

pub(in crate::table) fn arrow_file(batch: &RecordBatch, options: IpcWriteOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = FileWriter::try_new_with_options(&mut out, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    drop(writer);
    out
}

pub(in crate::table) fn arrow_stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = StreamWriter::try_new(&mut out, &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    drop(writer);
    out
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    arrow_stream_of(&[batch.slice(0, 1), batch.slice(1, batch.num_rows() - 1)])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn options(packing: arrow_ipc::CompressionType) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(Some(packing)).unwrap()
}

/// A folder with the data set in every form, by the same misleading ending.
fn forms(folder: &Folder) -> Vec<(&'static str, PathBuf)> {
    let batch = batch();
    let ones = [batch.slice(0, 1), batch.slice(1, 2), batch.slice(3, 1)];
    let forms = vec![
        ("csv", TEXT.as_bytes().to_vec()),
        ("csv.gz", gzip(TEXT.as_bytes())),
        ("csv.gz in two members", [gzip(&TEXT.as_bytes()[..50]), gzip(&TEXT.as_bytes()[50..])].concat()),
        ("csv.zst", zstd::encode_all(TEXT.as_bytes(), 1).unwrap()),
        ("parquet", parquet(std::slice::from_ref(&batch), Compression::UNCOMPRESSED)),
        ("parquet snappy", parquet(&ones, Compression::SNAPPY)),
        ("parquet zstd", parquet(&ones, Compression::ZSTD(ZstdLevel::default()))),
        ("parquet gzip", parquet(&ones, Compression::GZIP(Default::default()))),
        ("parquet lz4", parquet(&ones, Compression::LZ4_RAW)),
        ("arrow file", arrow_file(&batch, IpcWriteOptions::default())),
        ("arrow file zstd", arrow_file(&batch, options(arrow_ipc::CompressionType::ZSTD))),
        ("arrow file lz4", arrow_file(&batch, options(arrow_ipc::CompressionType::LZ4_FRAME))),
        ("arrow stream", arrow_stream(&batch)),
        ("arrow stream, gzip", gzip(&arrow_stream(&batch))),
    ];
    let mut all: Vec<(&str, PathBuf)> = Vec::new();
    for (i, (form, bytes)) in forms.into_iter().enumerate() {
        let path = folder.at(&format!("rows-{i}.dat"));
        fs::write(&path, bytes).unwrap();
        all.push((form, path));
    }
    let parts = folder.at("parts");
    fs::create_dir(&parts).unwrap();
    fs::write(parts.join("_SUCCESS"), "").unwrap();
    fs::write(parts.join(".part-0.crc"), "x").unwrap();
    for (i, part) in ones.iter().enumerate() {
        fs::write(parts.join(format!("part-{i}")), parquet(std::slice::from_ref(part), Compression::SNAPPY)).unwrap();
    }
    all.push(("pattern", parts.join("part-[0-9]")));
    all.push(("folder", parts));
    all
}

#[test]
fn one_data_set_is_one_table_in_every_form() {
    let folder = Folder::new("forms");
    let mut first: Option<Table> = None;
    for (form, path) in forms(&folder) {
        let table = read(&path, &spec()).unwrap_or_else(|e| panic!("{form}: {e}; {}", e.advice()));
        assert_eq!((table.rows, table.tally.left_out.rows()), (3, 1), "{form}");
        assert!(
            table.tally.left_out.to_string().contains("1 with no value in \"age\""),
            "{form}: {}",
            table.tally.left_out
        );
        let first = first.get_or_insert_with(|| table.clone());
        assert_eq!((&table.columns, &table.values), (&first.columns, &first.values), "{form}");
    }
    let first = first.unwrap();
    assert_eq!(first.columns, ["weight", "age", "cost", "smoker=no", "smoker=yes", "ill=false", "ill=true"]);
    assert_eq!(first.values[..7], [71.25, 40.0, 10.01, 1.0, 0.0, 0.0, 1.0]);
    assert_eq!(first.values[14..], [99.0, 61.0, 12.34, 0.0, 1.0, 1.0, 0.0]);
}

#[track_caller]
pub(in crate::table) fn refused(path: &Path, spec: &TableSpec) -> String {
    let error = read(path, spec).expect_err("this source is bad");
    format!("{error}; {}", error.advice())
}

pub(in crate::table) fn named(columns: &[&str]) -> TableSpec {
    TableSpec { columns: columns.iter().map(|&c| c.to_owned()).collect(), ..TableSpec::default() }
}

#[test]
fn every_cut_of_a_file_is_told_and_none_panics() {
    let folder = Folder::new("cut");
    for (form, path) in forms(&folder).into_iter().filter(|(form, _)| !matches!(*form, "csv" | "folder" | "pattern")) {
        let whole = fs::read(&path).unwrap();
        let cut = folder.at("cut.dat");
        for end in (1..whole.len()).step_by(if form.contains("csv") { 1 } else { 7 }) {
            fs::write(&cut, &whole[..end]).unwrap();
            if let Ok(table) = read(&cut, &spec()) {
                // A member of a packed file is whole by itself.
                assert!(form.contains("two members") && table.rows < 3, "{form}: {end} of {}", whole.len());
            }
        }
    }
}

/// A change of any byte is an error or other rows, and neither a panic nor memory without bounds.
#[test]
fn changed_bytes_do_no_harm() {
    let folder = Folder::new("changed");
    for (form, path) in forms(&folder) {
        if !path.is_file() || form == "csv" {
            continue;
        }
        let whole = fs::read(&path).unwrap();
        let changed = folder.at("changed.dat");
        for at in (0..whole.len().min(2048)).step_by(5) {
            let at = if form.contains("parquet") { whole.len() - 1 - at } else { at };
            for flip in [0x80, 0x01] {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                fs::write(&changed, bytes).unwrap();
                if let Ok(table) = read(&changed, &spec()) {
                    assert!(table.rows <= 4, "{form}");
                }
            }
        }
    }
}

#[test]
fn sizes_that_a_message_only_says_make_no_room() {
    let folder = Folder::new("hostile");
    let path = folder.at("rows");
    let stream = arrow_stream(&batch());
    let schema = 8 + u32::from_le_bytes(stream[4..8].try_into().unwrap()) as usize;
    let mut bytes = stream.clone();
    bytes[schema + 4..schema + 8].copy_from_slice(&0x7fff_fff0u32.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    assert!(refused(&path, &spec()).contains("described by more than"), "{}", refused(&path, &spec()));
    // A column that is said to be of 2^60 bytes behind its packing.
    let packed = arrow_file(&batch(), options(arrow_ipc::CompressionType::LZ4_FRAME));
    let marks: Vec<usize> =
        (0..packed.len() - 12).filter(|at| packed[at + 8..at + 12] == [0x04, 0x22, 0x4d, 0x18]).collect();
    let mut told = 0;
    for at in marks {
        let mut bytes = packed.clone();
        bytes[at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
        fs::write(&path, &bytes).unwrap();
        told += usize::from(refused(&path, &spec()).contains("larger than its packed form can hold"));
    }
    assert!(told > 0);
    // A Parquet file whose end says that 4 GiB describe it.
    let mut bytes = parquet(&[batch()], Compression::SNAPPY);
    let end = bytes.len();
    bytes[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    assert!(refused(&path, &spec()).contains("damaged or was cut short"));
}

#[test]
fn types_that_are_no_numbers_are_named_with_what_to_do() {
    let folder = Folder::new("types");
    let path = folder.at("rows");
    let list = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(1.0)])]);
    let bytes: ArrayRef = Arc::new(arrow_array::BinaryArray::from(vec![&b"x"[..]]));
    for (array, kind, next) in [
        (Arc::new(Date32Array::from(vec![1])) as ArrayRef, "Date32", "years or days since a date"),
        (Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![1])), "Timestamp", "not a number"),
        (Arc::new(list), "List", "columns of their own"),
        (bytes, "Binary", "neither number nor text"),
    ] {
        let batch =
            RecordBatch::try_from_iter([("a", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef), ("b", array)])
                .unwrap();
        fs::write(&path, arrow_stream_of(&[batch])).unwrap();
        let told = refused(&path, &named(&["a", "b"]));
        assert!(told.contains("the column \"b\"") && told.contains(kind) && told.contains(next), "{told}");
        assert_eq!(read(&path, &named(&["a"])).unwrap().values, [1.0], "a column that nobody asks for does no harm");
    }
}

#[test]
fn numbers_of_every_type_are_the_doubles_of_their_digits() {
    let folder = Folder::new("numbers");
    let path = folder.at("rows");
    let wide = [123_456_789_012_345_678_901_234_567_i128, -1, 9_007_199_254_740_993, 1];
    let decimals = Decimal128Array::from(wide.to_vec()).with_precision_and_scale(38, 10).unwrap();
    let codes: DictionaryArray<Int32Type> = vec![Some("b"), None, Some("a"), Some("b")].into_iter().collect();
    let batch = RecordBatch::try_from_iter([
        ("d", Arc::new(decimals) as ArrayRef),
        ("f", Arc::new(Float32Array::from(vec![0.5, 1e30, -0.0, 2.0]))),
        ("i", Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, 9_007_199_254_740_993, 0]))),
        ("c", Arc::new(codes)),
    ])
    .unwrap();
    fs::write(&path, parquet(&[batch], Compression::SNAPPY)).unwrap();
    let table = read(&path, &named(&["d", "f", "i"])).unwrap();
    let text = |digits: i128| -> f64 { format!("{digits}e-10").parse().unwrap() };
    for (row, digits) in wide.into_iter().enumerate() {
        assert_eq!(table.values[3 * row], text(digits));
    }
    assert_eq!(table.values[5], "-9223372036854775808".parse::<f64>().unwrap());
    let c = Categorical { column: "c".into(), categories: vec!["a".into(), "b".into()], weight: 1.0 };
    let spec = TableSpec { categorical: vec![c], ..TableSpec::default() };
    let told = refused(&path, &spec);
    assert!(told.contains("row 2, column \"c\": the value is missing"), "{told}");
}

#[test]
fn a_source_whose_files_differ_or_are_missing_is_told() {
    let folder = Folder::new("differ");
    let parts = folder.at("parts");
    fs::create_dir(&parts).unwrap();
    assert!(refused(&parts, &named(&["x"])).contains("no file of rows"));
    fs::write(parts.join("a.csv"), "x,y\n1,2\n").unwrap();
    fs::write(parts.join("b.csv"), "x,z\n1,2\n").unwrap();
    let told = refused(&parts, &named(&["x"]));
    assert!(told.contains("b.csv: its columns are others than those of") && told.contains("\"x\", \"y\""), "{told}");
    fs::create_dir(parts.join("year=2024")).unwrap();
    assert!(refused(&parts, &named(&["x"])).contains("folders in it"));
    assert!(refused(&parts.join("*.parquet"), &named(&["x"])).contains("no file of rows"));
    assert!(refused(&parts.join("none.csv"), &named(&["x"])).contains("cannot be opened"));
    for (bytes, told) in [
        (&b"PK\x03\x04 "[..], "a ZIP archive"),
        (b"ORC and more", "ORC"),
        (&gzip(&gzip(b"x\n1\n")), "packed twice"),
        (&gzip(&parquet(&[batch()], Compression::SNAPPY)), "read from its end"),
    ] {
        let path = folder.at("other");
        fs::write(&path, bytes).unwrap();
        assert!(refused(&path, &named(&["x"])).contains(told), "{told}");
    }
    let twice = Arc::new(Schema::new(vec![
        Field::new("x", DataType::Float64, false),
        Field::new("x", DataType::Float64, false),
    ]));
    let column: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let path = folder.at("twice");
    fs::write(&path, arrow_stream_of(&[RecordBatch::try_new(twice, vec![column.clone(), column]).unwrap()])).unwrap();
    assert!(refused(&path, &named(&["x"])).contains("two columns are called \"x\""));
}

/// Batches of nothing but usable numbers are copied at once, and others row by row: both give the table and the errors of the same text.
#[test]
fn numbers_that_are_copied_at_once_are_those_of_the_text() {
    let folder = Folder::new("forms-plain");
    let rows = 3000;
    let text_of = |spoil: Option<usize>| {
        let mut text = String::from("a,b,c\n");
        for i in 0..rows {
            let b = if spoil == Some(i) { "9.5".to_owned() } else { format!("{}", (i * 7 % 1000) as f64 / 250.0) };
            text += &format!("{i},{b},{}\n", i % 5);
        }
        text
    };
    let batch_of = |spoil: Option<usize>| {
        let of = |i: usize| if spoil == Some(i) { 9.5 } else { (i * 7 % 1000) as f64 / 250.0 };
        let columns: [(&str, ArrayRef); 3] = [
            ("a", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
            ("b", Arc::new(Float64Array::from_iter_values((0..rows).map(of)))),
            ("c", Arc::new(Float32Array::from_iter_values((0..rows).map(|i| (i % 5) as f32)))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let rules = RowRules { units: [("b".to_owned(), Unit { factor: 0.1, offset: 1.0 })].into(), ..RowRules::default() };
    let spec = TableSpec {
        columns: ["c", "b", "a"].map(str::to_owned).to_vec(),
        within: vec![(0.0, 4.0), (1.0, 1.5), (0.0, 1e4)],
        rules: Arc::new(rules),
        ..TableSpec::default()
    };
    let path = folder.0.join("rows");
    for spoil in [None, Some(1234)] {
        let mut found = Vec::new();
        let columns = parquet(&[batch_of(spoil)], Compression::SNAPPY);
        for bytes in [text_of(spoil).into_bytes(), columns, arrow_stream(&batch_of(spoil))] {
            fs::write(&path, bytes).unwrap();
            found.push(read(&path, &spec).map(|table| (table.values, table.rows)).map_err(|e| e.to_string()));
        }
        let rest = |text: &String| text.split_once("column").map(|(_, rest)| rest.to_owned());
        match (&found[0], spoil) {
            (Ok((values, count)), None) => {
                assert_eq!((values.len(), *count), (3 * rows, rows));
                assert!(found.iter().all(|one| *one == found[0]));
            }
            (Err(text), Some(_)) => {
                assert!(found[1].as_ref().unwrap_err().contains("row 1235"), "{found:?}");
                assert!(found.iter().all(|one| one.as_ref().err().and_then(rest) == rest(text)), "{found:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

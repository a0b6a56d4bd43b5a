//! One data set in every form that is read, and what is wrong with files of them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use ::parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationSecondArray, Float32Array,
    Float64Array, Int32Array, Int64Array, LargeStringArray, ListArray, NullArray, RecordBatch, StringArray,
    StringViewArray, UInt64Array,
    types::{Float64Type, Int32Type},
};
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};

use super::{super::*, gzip, whole};
use crate::{documents::tests::Folder, plan::Categorical};

/// The same rows as text and as typed columns: whole numbers, decimals, a category, a missing value, a yes or no, a column nobody asks for.
const TEXT: &str = "id,age,weight,smoker,cost,ill\n1,40,71.25,no,10.01,true\n2,50,80.5,yes,-0.10,false\n3,,60,no,3,true\n4,61,99,yes,12.34,false\n";

fn batch() -> RecordBatch {
    columns_of(TEXT, "int short float text cents bool")
}

/// The rows of a text in columns of these types. A cell that is none of its type is null, and an empty one in every type.
pub(in crate::table) fn columns_of(text: &str, types: &str) -> RecordBatch {
    let sign = if text.contains(';') { ';' } else { ',' };
    let mut lines = text.lines().map(|line| line.split(sign).collect::<Vec<_>>());
    let (names, rows): (_, Vec<Vec<&str>>) = (lines.next().unwrap(), lines.collect());
    let column = |at: usize, of: &str| -> ArrayRef {
        let cells = rows.iter().map(|row| row[at]);
        let texts = || cells.clone().map(|cell| (!cell.is_empty()).then_some(cell));
        let whole = cells.clone().map(|cell| cell.parse::<i64>().ok());
        let numbers = cells.clone().map(|cell| cell.trim().parse::<f64>().ok());
        let cents = numbers.clone().map(|x| x.map(|x| (x * 100.0).round() as i128));
        match of {
            "float" => Arc::new(numbers.collect::<Float64Array>()),
            "single" => Arc::new(numbers.map(|x| x.map(|x| x as f32)).collect::<Float32Array>()),
            "int" => Arc::new(whole.collect::<Int64Array>()),
            "short" => Arc::new(whole.map(|x| x.map(|x| x as i32)).collect::<Int32Array>()),
            "unsigned" => Arc::new(whole.map(|x| x.map(|x| x as u64)).collect::<UInt64Array>()),
            "cents" => Arc::new(cents.collect::<Decimal128Array>().with_precision_and_scale(9, 2).unwrap()),
            "bool" => Arc::new(cells.map(|cell| cell.to_lowercase().parse().ok()).collect::<BooleanArray>()),
            "text" => Arc::new(texts().collect::<StringArray>()),
            "large" => Arc::new(texts().collect::<LargeStringArray>()),
            "view" => Arc::new(texts().collect::<StringViewArray>()),
            "codes" => Arc::new(texts().collect::<DictionaryArray<Int32Type>>()),
            "null" => Arc::new(NullArray::new(rows.len())),
            other => panic!("no type is called {other}"),
        }
    };
    let columns = names.iter().zip(types.split(' ')).enumerate().map(|(at, (name, of))| (name, column(at, of), true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The same batch in every typed form.
pub(in crate::table) fn typed(batch: &RecordBatch) -> [Vec<u8>; 3] {
    let one = std::slice::from_ref(batch);
    [parquet(one, Compression::SNAPPY), arrow_file(batch, IpcWriteOptions::default()), arrow_stream_of(one)]
}

fn spec() -> TableSpec {
    let of = |column: &str, categories: [&str; 2]| Categorical {
        column: column.into(),
        categories: categories.map(str::to_owned).to_vec(),
        weight: 1.0,
    };
    let rules = RowRules {
        missing: Some(Missing::LeaveOut),
        columns: [("age".to_owned(), "age".to_owned())].into(),
        ..RowRules::default()
    };
    let categorical = vec![of("smoker", ["no", "yes"]), of("ill", ["false", "true"])];
    TableSpec { categorical, rules: Arc::new(rules), ..named(&["weight", "age", "cost"]) }
}

pub(in crate::table) fn parquet(batches: &[RecordBatch], packing: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder().set_compression(packing).set_max_row_group_row_count(Some(3));
    parquet_with(batches, properties.build())
}

pub(in crate::table) fn parquet_with(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batches[0].schema(), Some(properties)).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

pub(in crate::table) fn arrow_file(batch: &RecordBatch, options: IpcWriteOptions) -> Vec<u8> {
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

pub(in crate::table) fn arrow_stream_of(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

fn arrow_stream(batch: &RecordBatch) -> Vec<u8> {
    arrow_stream_of(&[batch.slice(0, 1), batch.slice(1, batch.num_rows() - 1)])
}

fn options(packing: arrow_ipc::CompressionType) -> IpcWriteOptions {
    IpcWriteOptions::default().try_with_compression(Some(packing)).unwrap()
}

/// The three parts that some of the forms have.
fn parts() -> [RecordBatch; 3] {
    [(0, 1), (1, 2), (3, 1)].map(|(at, rows)| batch().slice(at, rows))
}

/// A file of the data set in every form.
pub(in crate::table) fn forms() -> Vec<(&'static str, Vec<u8>)> {
    let (batch, parts) = (batch(), parts());
    vec![
        ("csv", TEXT.as_bytes().to_vec()),
        ("csv.gz", gzip(TEXT.as_bytes())),
        ("csv.gz in two members", [gzip(&TEXT.as_bytes()[..50]), gzip(&TEXT.as_bytes()[50..])].concat()),
        ("csv.zst", zstd::encode_all(TEXT.as_bytes(), 1).unwrap()),
        ("parquet", parquet(std::slice::from_ref(&batch), Compression::UNCOMPRESSED)),
        ("parquet snappy", parquet(&parts, Compression::SNAPPY)),
        ("parquet zstd", parquet(&parts, Compression::ZSTD(ZstdLevel::default()))),
        ("parquet gzip", parquet(&parts, Compression::GZIP(Default::default()))),
        ("parquet lz4", parquet(&parts, Compression::LZ4_RAW)),
        ("arrow file", arrow_file(&batch, IpcWriteOptions::default())),
        ("arrow file zstd", arrow_file(&batch, options(arrow_ipc::CompressionType::ZSTD))),
        ("arrow file lz4", arrow_file(&batch, options(arrow_ipc::CompressionType::LZ4_FRAME))),
        ("arrow stream", arrow_stream(&batch)),
        ("arrow stream, gzip", gzip(arrow_stream(&batch))),
    ]
}

#[test]
fn one_data_set_is_one_table_in_every_form() {
    let folder = Folder::new("forms");
    let mut all: Vec<(&str, PathBuf)> = Vec::new();
    // By the same misleading ending.
    for (i, (form, bytes)) in forms().into_iter().enumerate() {
        all.push((form, folder.at(&format!("rows-{i}.dat"))));
        fs::write(&all[i].1, bytes).unwrap();
    }
    let some = folder.at("parts");
    fs::create_dir(&some).unwrap();
    fs::write(some.join("_SUCCESS"), "").unwrap();
    fs::write(some.join(".part-0.crc"), "x").unwrap();
    for (i, part) in parts().into_iter().enumerate() {
        fs::write(some.join(format!("part-{i}")), parquet(&[part], Compression::SNAPPY)).unwrap();
    }
    all.extend([("pattern", some.join("part-[0-9]")), ("folder", some)]);
    let mut first: Option<Table> = None;
    for (form, path) in all {
        let table = read(&path, &spec()).unwrap_or_else(|e| panic!("{form}: {}", whole(&e)));
        assert_eq!((table.rows, table.tally.left_out.rows()), (3, 1), "{form}");
        let left_out = table.tally.left_out.to_string();
        assert!(left_out.contains("1 with no value in \"age\""), "{form}: {left_out}");
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
    whole(&read(path, spec).expect_err("this source is bad"))
}

/// A file of these bytes.
pub(in crate::table) fn read_bytes(bytes: impl AsRef<[u8]>, spec: &TableSpec) -> Result<Table, TableError> {
    let folder = Folder::new("bytes");
    fs::write(folder.at("rows"), bytes).unwrap();
    read(folder.at("rows"), spec)
}

/// Why they are refused.
#[track_caller]
pub(in crate::table) fn told(bytes: impl AsRef<[u8]>, spec: &TableSpec) -> String {
    whole(&read_bytes(bytes, spec).expect_err("these bytes are bad"))
}

pub(in crate::table) fn named(columns: &[&str]) -> TableSpec {
    TableSpec { columns: columns.iter().map(|&c| c.to_owned()).collect(), ..TableSpec::default() }
}

#[test]
fn every_cut_of_a_file_is_told_and_none_panics() {
    for (form, all) in forms().into_iter().filter(|(form, _)| *form != "csv") {
        for end in (1..all.len()).step_by(if form.contains("csv") { 1 } else { 7 }) {
            if let Ok(table) = read_bytes(&all[..end], &spec()) {
                // A member of a packed file is whole by itself.
                assert!(form.contains("two members") && table.rows < 3, "{form}: {end} of {}", all.len());
            }
        }
    }
}

#[test]
fn sizes_that_a_message_only_says_make_no_room() {
    let stream = arrow_stream(&batch());
    let schema = 8 + u32::from_le_bytes(stream[4..8].try_into().unwrap()) as usize;
    let mut bytes = stream.clone();
    bytes[schema + 4..schema + 8].copy_from_slice(&0x7fff_fff0u32.to_le_bytes());
    assert!(told(&bytes, &spec()).contains("described by more than"), "{}", told(&bytes, &spec()));
    // A column that is said to be of 2^60 bytes behind its packing.
    let packed = arrow_file(&batch(), options(arrow_ipc::CompressionType::LZ4_FRAME));
    let marks: Vec<usize> =
        (0..packed.len() - 12).filter(|at| packed[at + 8..at + 12] == [0x04, 0x22, 0x4d, 0x18]).collect();
    let too_large = |at: &usize| {
        let mut bytes = packed.clone();
        bytes[*at..at + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
        told(&bytes, &spec()).contains("larger than its packed form can hold")
    };
    assert!(marks.iter().filter(|at| too_large(at)).count() > 0);
    // A Parquet file whose end says that 4 GiB describe it.
    let mut bytes = parquet(&[batch()], Compression::SNAPPY);
    let end = bytes.len();
    bytes[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(told(&bytes, &spec()).contains("damaged or was cut short"));
}

/// Also where a form has them as whole numbers, and a writer's note says what they are: spans of time in Parquet, periods of pandas.
#[test]
fn types_that_are_no_numbers_are_named_with_what_to_do() {
    let of = |array: ArrayRef| array;
    let whole = || of(Arc::new(Int64Array::from(vec![600])));
    let list = ListArray::from_iter_primitive::<Float64Type, _, _>([Some(vec![Some(1.0)])]);
    for (array, note, kind, next) in [
        (of(Arc::new(Date32Array::from(vec![1]))), "", "Date32", "years or days since a date"),
        (of(Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![1]))), "", "Timestamp", "not a number"),
        (of(Arc::new(DurationSecondArray::from(vec![60]))), "", "Duration", "a point in time is not a number"),
        (of(Arc::new(list)), "", "List", "columns of their own"),
        (of(Arc::new(arrow_array::BinaryArray::from(vec![&b"x"[..]]))), "", "Binary", "neither number nor text"),
        (whole(), "pandas.period", "Int64 (pandas.period)", "a point in time is not a number"),
        (whole(), "h3", "Int64 (h3)", "stand for something else"),
    ] {
        let notes = Some(("ARROW:extension:name".to_owned(), note.to_owned())).filter(|_| !note.is_empty());
        let metadata: arrow_schema::Metadata = notes.into_iter().collect();
        let field = Field::new("b", array.data_type().clone(), true).with_metadata(metadata);
        let schema = Schema::new(vec![field, Field::new("a", DataType::Float64, true)]);
        let arrays = vec![array, Arc::new(Float64Array::from(vec![1.0])) as ArrayRef];
        for bytes in typed(&RecordBatch::try_new(schema.into(), arrays).unwrap()) {
            let categories = vec!["600".to_owned(), "601".to_owned()];
            let codes = vec![Categorical { column: "b".into(), categories, weight: 1.0 }];
            for asked in [named(&["a", "b"]), TableSpec { categorical: codes, ..named(&["a"]) }] {
                let told = told(&bytes, &asked);
                assert!(told.contains("the column \"b\"") && told.contains(kind) && told.contains(next), "{told}");
            }
            assert_eq!(read_bytes(&bytes, &named(&["a"])).unwrap().values, [1.0], "what nobody asks for does no harm");
        }
    }
}

#[test]
fn numbers_of_every_type_are_the_doubles_of_their_digits() {
    let wide = [123_456_789_012_345_678_901_234_567_i128, -1, 9_007_199_254_740_993, 1];
    let decimals = Decimal128Array::from(wide.to_vec()).with_precision_and_scale(38, 10).unwrap();
    let batch = RecordBatch::try_from_iter([
        ("d", Arc::new(decimals) as ArrayRef),
        ("f", Arc::new(Float32Array::from(vec![0.5, 1e30, -0.0, 2.0]))),
        ("i", Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, 9_007_199_254_740_993, 0]))),
    ]);
    let table = read_bytes(parquet(&[batch.unwrap()], Compression::SNAPPY), &named(&["d", "f", "i"])).unwrap();
    for (row, digits) in wide.into_iter().enumerate() {
        assert_eq!(table.values[3 * row], format!("{digits}e-10").parse::<f64>().unwrap());
    }
    assert_eq!(table.values[5], "-9223372036854775808".parse::<f64>().unwrap());
}

#[test]
fn a_source_whose_files_differ_or_are_missing_is_told() {
    let folder = Folder::new("differ");
    let parts = folder.at("parts");
    fs::create_dir(&parts).unwrap();
    assert!(refused(&parts, &named(&["x"])).contains("no file of rows"));
    fs::write(parts.join("a.csv"), "x,y\n1,2\n").unwrap();
    fs::write(parts.join("b.csv"), "x,z\n1,2\n").unwrap();
    let error = refused(&parts, &named(&["x"]));
    assert!(error.contains("b.csv: its columns are others than those of") && error.contains("\"x\", \"y\""), "{error}");
    fs::create_dir(parts.join("year=2024")).unwrap();
    assert!(refused(&parts, &named(&["x"])).contains("folders in it"));
    assert!(refused(&parts.join("*.parquet"), &named(&["x"])).contains("no file of rows"));
    assert!(refused(&parts.join("none.csv"), &named(&["x"])).contains("cannot be opened"));
    for (bytes, says) in [
        (&b"PK\x03\x04 "[..], "a ZIP archive"),
        (b"ORC and more", "ORC"),
        (&gzip(gzip(b"x\n1\n")), "packed twice"),
        (&gzip(parquet(&[batch()], Compression::SNAPPY)), "read from its end"),
    ] {
        assert!(told(bytes, &named(&["x"])).contains(says), "{says}");
    }
    let twice = arrow_stream_of(&[columns_of("x,x\n1,1\n", "float float")]);
    assert!(told(twice, &named(&["x"])).contains("two columns are called \"x\""));
}

/// Batches of nothing but usable numbers are copied at once, and others row by row: both give the table and the errors of the same text.
#[test]
fn numbers_that_are_copied_at_once_are_those_of_the_text() {
    let rows = 3000;
    let text_of = |spoil: Option<usize>| {
        let b = |i: usize| if spoil == Some(i) { 9.5 } else { (i * 7 % 1000) as f64 / 250.0 };
        (0..rows).fold("a,b,c\n".to_owned(), |text, i| text + &format!("{i},{},{}\n", b(i), i % 5))
    };
    let rules = RowRules { units: [("b".to_owned(), Unit { factor: 0.1, offset: 1.0 })].into(), ..RowRules::default() };
    let within = vec![(0.0, 4.0), (1.0, 1.5), (0.0, 1e4)];
    let spec = TableSpec { within, rules: Arc::new(rules), ..named(&["c", "b", "a"]) };
    for spoil in [None, Some(1234)] {
        let mut found = Vec::new();
        let text = text_of(spoil);
        let columns = columns_of(&text, "int float single");
        for bytes in [text.into_bytes()].into_iter().chain(typed(&columns)) {
            let read = read_bytes(bytes, &spec);
            found.push(read.map(|table| (table.values, table.rows)).map_err(|e| e.to_string()));
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

//! One normal form: the same values are the same rows, however a form writes them. And typed files as other writers make them.

use std::{fs, path::PathBuf, sync::Arc};

use ::parquet::{
    basic::Compression,
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter},
};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationSecondArray, Float64Array,
    Int64Array, NullArray, RecordBatch, StringArray, StructArray, UInt64Array, types::Int32Type,
};
use arrow_ipc::{CompressionType, MetadataVersion, writer::IpcWriteOptions};
use arrow_schema::{DataType, Field};

use super::{
    super::*,
    forms::{arrow_file as arrow, arrow_stream_of, named, parquet, refused},
};
use crate::{documents::tests::Folder, plan::Categorical};

fn batch(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.iter().map(|(name, array)| (*name, array.clone(), true))).unwrap()
}

/// The same batch in every typed form.
fn typed(batch: &RecordBatch) -> [Vec<u8>; 3] {
    let one = std::slice::from_ref(batch);
    [parquet(one, Compression::SNAPPY), arrow(batch, IpcWriteOptions::default()), arrow_stream_of(one)]
}

fn with(column: &str, categories: &[&str]) -> TableSpec {
    let categories = categories.iter().map(|word| (*word).to_owned()).collect();
    let categorical = vec![Categorical { column: column.into(), categories, weight: 1.0 }];
    TableSpec { categorical, ..named(&["x"]) }
}

/// Rows with this column beside `x`, as text and in typed forms, read by this; every one has to give the same.
#[track_caller]
fn same(folder: &Folder, texts: &[&str], arrays: Vec<ArrayRef>, spec: &TableSpec) -> Result<Vec<f64>, String> {
    let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values((0..texts.len()).map(|i| i as f64)));
    let text = texts.iter().enumerate().fold("x,c\n".to_owned(), |text, (i, cell)| text + &format!("{i},{cell}\n"));
    let typed = arrays.into_iter().flat_map(|array| typed(&batch(&[("x", numbers.clone()), ("c", array)])));
    let mut first = None;
    for (form, bytes) in [text.into_bytes()].into_iter().chain(typed).enumerate() {
        let path = folder.at("rows");
        fs::write(&path, bytes).unwrap();
        let found = read(&path, spec).map(|table| table.values).map_err(|e| e.reasons().to_string());
        let found = found.map_err(|why| why.replace("lines", "rows"));
        // The header is a line of the text.
        let place = |why: &String| why.split(" (").next().unwrap_or_default().to_owned();
        let found = found.map_err(|why| place(&why));
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "form {form} of {texts:?}");
    }
    first.unwrap()
}

#[test]
fn a_value_is_the_same_in_every_form_and_spelling() {
    let folder = Folder::new("normal");
    let array = |array: ArrayRef| vec![array];
    let floats = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let whole = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let texts = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let bools = Arc::new(BooleanArray::from(vec![true, false])) as ArrayRef;
    let ones = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    // Codes: pandas makes floats of integers with a gap.
    for written in [["1", "2"], ["1.0", "2.0"], [" 1.", "2.00 "]] {
        let arrays = vec![whole(&[1, 2]), floats(&[1.0, 2.0]), texts(&written)];
        for categories in [["1", "2"], ["1.0", "2.0"]] {
            assert_eq!(same(&folder, &written, arrays.clone(), &with("c", &categories)).unwrap(), ones);
        }
    }
    assert!(
        same(&folder, &["01"], array(texts(&["01"])), &with("c", &["1", "2"]))
            .unwrap_err()
            .contains("another category")
    );
    // A yes or no.
    for written in [["True", "False"], ["TRUE", "FALSE"], ["true", "false"]] {
        let arrays = || vec![bools.clone(), texts(&written)];
        for categories in [["true", "false"], ["True", "False"], ["1", "0"]] {
            assert_eq!(same(&folder, &written, arrays(), &with("c", &categories)).unwrap(), ones);
        }
        assert_eq!(same(&folder, &written, array(bools.clone()), &named(&["x", "c"])).unwrap(), [0.0, 1.0, 1.0, 0.0]);
    }
    // No value.
    for word in ["NaN", "nan", "", "NA", "<NA>", "NULL", "None", "#N/A"] {
        let nothing =
            vec![floats(&[f64::NAN]), Arc::new(NullArray::new(1)) as ArrayRef, Arc::new(Int64Array::from(vec![None]))];
        assert_eq!(
            same(&folder, &[word], nothing.clone(), &named(&["x", "c"])).unwrap_err(),
            "1 with no value in \"c\""
        );
        let told = same(&folder, &[word], [nothing, array(texts(&[word]))].concat(), &with("c", &["a", "b"]));
        assert_eq!(told.unwrap_err(), "1 with no value in \"c\"");
        if !word.is_empty() {
            let listed = with("c", &[word, "b"]);
            assert_eq!(same(&folder, &[word], array(texts(&[word])), &listed).unwrap(), [0.0, 1.0, 0.0]);
        }
    }
    // Letters with accents, in one piece or two; letters of another alphabet are others, which is told.
    let [one, two] = ["caf\u{e9}", "cafe\u{301}"];
    for (written, listed) in [(one, two), (two, one), (two, two)] {
        assert_eq!(
            same(&folder, &[written], array(texts(&[written])), &with("c", &[listed, "b"])).unwrap(),
            [0.0, 1.0, 0.0]
        );
    }
    let path = folder.at("rows");
    fs::write(&path, format!("{two},x\n1,2\n")).unwrap();
    assert_eq!(read(&path, &named(&["x", one])).unwrap().values, [2.0, 1.0]);
    assert_eq!(read_header(&path, Dialect::default(), []).unwrap(), [one, "x"]);
    fs::write(&path, "\u{430}ge,x\n1,2\n").unwrap();
    assert!(refused(&path, &named(&["age"])).contains("looks the same and has letters of another alphabet"));
    fs::write(&path, "c,x\n\u{43e}ld,2\n").unwrap();
    let told = refused(&path, &with("c", &["old", "young"]));
    assert!(told.contains("the cell looks like one of them") && !told.contains('\u{43e}'), "{told}");
    // Infinity is none of these.
    assert!(
        same(&folder, &["inf"], array(floats(&[f64::INFINITY])), &named(&["x", "c"])).unwrap_err().contains("infinite")
    );
}

/// A header of numbers may be a row: it is one of names where all that is asked for is among it, and is never quoted else.
#[test]
fn names_may_be_numbers_where_they_are_asked_for() {
    let folder = Folder::new("years");
    let path = folder.at("rows");
    let text = "country,2019,2020\nA,1,2\nB,3,4\n";
    fs::write(&path, text).unwrap();
    assert_eq!(read(&path, &named(&["2020", "2019"])).unwrap().values, [2.0, 1.0, 4.0, 3.0]);
    assert_eq!(read_header(&path, Dialect::default(), ["2019"]).unwrap(), ["country", "2019", "2020"]);
    let rules = RowRules { columns: [("before".to_owned(), "2019".to_owned())].into(), ..RowRules::default() };
    let spec = TableSpec { rules: Arc::new(rules), ..named(&["before"]) };
    assert_eq!(read(&path, &spec).unwrap().values, [1.0, 3.0]);
    for asked in [&["2021"][..], &["2019", "age"], &[]] {
        let told = refused(&path, &named(asked));
        assert!(
            told.contains("looks like data") && told.contains("[rows.columns]") && !told.contains("country"),
            "{told}"
        );
        assert!(read_header(&path, Dialect::default(), asked.iter().copied()).is_err());
    }
    for text in ["1,1\n2,3\n", "1,\n2,3\n"] {
        fs::write(&path, text).unwrap();
        assert!(refused(&path, &named(&["1"])).contains("looks like data"));
    }
    fs::write(&path, "inf,nan\n30,21.5\n").unwrap();
    assert_eq!(read(&path, &named(&[])).unwrap().columns, ["inf", "nan"]);
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 3.0]));
    for bytes in typed(&batch(&[("0", numbers.clone()), ("1", numbers)])) {
        fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path, &named(&[])).unwrap().columns, ["0", "1"]);
    }
}

#[test]
fn names_that_are_integers_keep_their_digits() {
    let folder = Folder::new("digits");
    let near = [9_007_199_254_740_992_i64, 9_007_199_254_740_993];
    let words = near.map(|x| x.to_string());
    let words = words.each_ref().map(String::as_str);
    let whole: ArrayRef = Arc::new(Int64Array::from(near.to_vec()));
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(near.map(|x| x as u64).to_vec()));
    let ones = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    assert_eq!(same(&folder, &words, vec![whole.clone(), unsigned], &with("c", &words)).unwrap(), ones);
    let rules = RowRules { filter: Filter::parse(&format!("c = '{}'", words[1])).unwrap(), ..RowRules::default() };
    let filtered = TableSpec { rules: Arc::new(rules), ..named(&["x"]) };
    assert_eq!(same(&folder, &words, vec![whole], &filtered).unwrap(), [1.0]);
}

#[test]
fn labels_and_filters_find_a_value_in_every_form() {
    let folder = Folder::new("labels");
    let path = folder.at("rows");
    let columns = |c: ArrayRef| batch(&[("x", Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef), ("c", c)]);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.5]));
    let bools: ArrayRef = Arc::new(BooleanArray::from(vec![true, false]));
    let of = |filter: &str| {
        let rules = RowRules { filter: Filter::parse(filter).unwrap(), ..RowRules::default() };
        TableSpec { rules: Arc::new(rules), ..named(&["x"]) }
    };
    for (text, array, filter) in [
        ("x,c\n1,1.0\n2,2.50\n", &floats, "c = '1'"),
        ("x,c\n1,1\n2,2.5\n", &floats, "c = 1.0"),
        ("x,c\n1,True\n2,False\n", &bools, "c = 'TRUE'"),
        ("x,c\n1,TRUE\n2,FALSE\n", &bools, "c != 'false'"),
        ("x,c\n1,true\n2,false\n", &bools, "c = 1"),
    ] {
        let mut labels = Vec::new();
        for bytes in typed(&columns(array.clone())).into_iter().chain([text.as_bytes().to_vec()]) {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, &of(filter)).unwrap().values, [1.0], "{filter}");
            labels.push(read(&path, &TableSpec { label: Some("c".into()), ..named(&["x"]) }).unwrap().labels.unwrap());
        }
        assert!(labels.iter().all(|one| *one == labels[0]), "{labels:?}");
    }
}

/// Files as other programs write them: old ones without a mark before a message, ones whose dictionaries come in between, packed ones.
#[test]
fn arrow_files_are_read_by_their_end() {
    let folder = Folder::new("ends");
    let path = folder.at("rows");
    let codes: DictionaryArray<Int32Type> = ["b", "a", "b", "a"].into_iter().collect();
    let all = batch(&[
        ("x", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0])) as ArrayRef),
        ("c", Arc::new(codes)),
        ("i", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
    ]);
    let spec = with("c", &["a", "b"]);
    let options = |alignment, legacy, version| IpcWriteOptions::try_new(alignment, legacy, version).unwrap();
    let expected = [1.0, 0.0, 1.0, 2.0, 1.0, 0.0, 3.0, 0.0, 1.0, 4.0, 1.0, 0.0];
    for bytes in [
        arrow(&all, options(8, true, MetadataVersion::V4)),
        arrow(&all, options(64, true, MetadataVersion::V4)),
        arrow(&all, options(8, false, MetadataVersion::V4)),
        arrow(&all, options(64, false, MetadataVersion::V5)),
        arrow(&all, IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap()),
    ] {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path, &spec).unwrap().values, expected);
        // What stands before the messages plays no part, and what their end says has to be there.
        let mut other = bytes.clone();
        other[8..16].fill(0x41);
        fs::write(&path, &other).unwrap();
        assert_eq!(read(&path, &spec).unwrap().values, expected);
        for cut in [1, 9, bytes.len() / 2] {
            fs::write(&path, &bytes[..bytes.len() - cut]).unwrap();
            assert!(refused(&path, &spec).contains("damaged or was cut short"));
        }
    }
    let packed = zstd::encode_all(&arrow(&all, IpcWriteOptions::default())[..], 1).unwrap();
    fs::write(&path, packed).unwrap();
    assert!(refused(&path, &spec).contains("read from its end"));
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
    let folder = Folder::new("packing");
    let path = folder.at("rows");
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let bytes = parquet(&[batch(&[("x", numbers.clone()), ("y", numbers)])], Compression::UNCOMPRESSED);
    for (packing, told) in [(Compression::BROTLI(Default::default()), "brotli"), (Compression::LZO, "LZO")] {
        let other = changed(&bytes, |chunk| match chunk.column_path().string() == "y" {
            true => chunk.into_builder().set_compression(packing).build().unwrap(),
            false => chunk,
        });
        fs::write(&path, other).unwrap();
        let error = refused(&path, &named(&["x", "y"]));
        assert!(error.contains(&format!("\"y\" is packed by {told}")) && error.contains("zstd"), "{error}");
        assert_eq!(read(&path, &named(&["x"])).unwrap().values, [1.0, 2.0]);
    }
}

#[test]
fn a_dictionary_that_is_said_to_be_at_the_begin_of_the_file_is_none() {
    let folder = Folder::new("zeros");
    let path = folder.at("rows");
    let properties = ::parquet::file::properties::WriterProperties::builder().set_dictionary_enabled(false).build();
    let one = batch(&[("x", Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef)]);
    let mut bytes = Vec::new();
    let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, one.schema(), Some(properties)).unwrap();
    writer.write(&one).unwrap();
    writer.close().unwrap();
    let zero = |chunk: ColumnChunkMetaData| chunk.into_builder().set_dictionary_page_offset(Some(0)).build().unwrap();
    fs::write(&path, changed(&bytes, zero)).unwrap();
    assert_eq!(read(&path, &named(&["x"])).unwrap().values, [1.0, 2.0]);
}

/// Batches with columns of every kind.
fn shapes() -> Vec<RecordBatch> {
    let rows = 40;
    let numbers: ArrayRef = Arc::new((0..rows).map(|i| (i % 7 > 0).then_some(f64::from(i))).collect::<Float64Array>());
    let codes: DictionaryArray<Int32Type> =
        (0..rows).map(|i| (i % 5 > 0).then_some(["a", "b"][i as usize % 2])).collect();
    let texts: ArrayRef = Arc::new(StringArray::from_iter((0..rows).map(|i| (i % 3 > 0).then(|| format!("word {i}")))));
    let decimals = Decimal128Array::from_iter_values((0..rows).map(|i| i128::from(i) * 1_000_003));
    let part = Arc::new(Field::new("part", DataType::Float64, true));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(part, numbers.clone())]));
    let all = batch(&[
        ("x", numbers),
        ("c", Arc::new(codes)),
        ("t", texts),
        ("d", Arc::new(decimals.with_precision_and_scale(20, 3).unwrap())),
        ("day", Arc::new(Date32Array::from_iter_values(0..rows))),
        ("n", nested),
    ]);
    vec![all.slice(0, 25), all.slice(25, 0), all.slice(25, 15)]
}

/// Parquet has a span of time as whole numbers, and the writer's note says what they are.
#[test]
fn spans_of_time_are_no_numbers_in_any_form() {
    let spans: ArrayRef = Arc::new(DurationSecondArray::from(vec![60, 120]));
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let folder = Folder::new("spans");
    for bytes in typed(&batch(&[("stay", spans), ("x", numbers)])) {
        let path = folder.at("rows");
        fs::write(&path, bytes).unwrap();
        assert!(refused(&path, &named(&["stay"])).contains("a point in time is not a number"));
        assert_eq!(read(&path, &named(&["x"])).unwrap().values, [1.0, 2.0]);
    }
}

/// Bytes that are changed, cut out or put in twice make an error or other rows: no panic, and no memory without bounds.
/// `VEILSUM_MUTATIONS=1000000 cargo test -p veilsum-node --features columnar --lib mutated -- --nocapture` tries more of them.
#[test]
fn mutated_files_do_no_harm() {
    let seed = std::env::var("VEILSUM_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(u64::from(std::process::id()) | 1);
    println!("seed {seed}");
    let rounds = std::env::var("VEILSUM_MUTATIONS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(300);
    let mut state: u64 = seed;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let folder = Folder::new("mutated");
    let path: PathBuf = folder.at("rows");
    let shapes = shapes();
    let packing = |of| IpcWriteOptions::default().try_with_compression(Some(of)).unwrap();
    let files = [
        parquet(&shapes, Compression::SNAPPY),
        parquet(&shapes, Compression::UNCOMPRESSED),
        arrow(&shapes[0], IpcWriteOptions::default()),
        arrow(&shapes[0], packing(CompressionType::LZ4_FRAME)),
        arrow(&shapes[0], packing(CompressionType::ZSTD)),
        arrow_stream_of(&shapes[..1]),
    ];
    let specs = [with("c", &["a", "b"]), named(&["x", "d"]), TableSpec { label: Some("t".into()), ..named(&["x"]) }];
    for round in 0..rounds {
        let mut bytes = files[round % files.len()].clone();
        for _ in 0..1 + random(4) {
            // The description is at one of the ends, and more is decided there.
            let span = match random(3) {
                0 => bytes.len(),
                _ => bytes.len().min(1500),
            };
            let at = if round % files.len() == 5 { random(span) } else { bytes.len() - 1 - random(span) };
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
        fs::write(&path, &bytes).unwrap();
        for spec in &specs {
            if let Err(error) = read(&path, spec) {
                assert!(!error.advice().is_empty(), "{error}");
            }
        }
    }
}

/// A period of pandas is held as whole numbers, and is no number.
#[test]
fn what_a_writer_gave_another_meaning_is_no_number() {
    let folder = Folder::new("periods");
    let path = folder.at("rows");
    let of = |name: &str| {
        let metadata: arrow_schema::Metadata = [("ARROW:extension:name".to_owned(), name.to_owned())].into();
        let field = Field::new("month", DataType::Int64, true).with_metadata(metadata);
        let schema = arrow_schema::Schema::new(vec![field, Field::new("x", DataType::Float64, true)]);
        let arrays: Vec<ArrayRef> =
            vec![Arc::new(Int64Array::from(vec![600, 601])), Arc::new(Float64Array::from(vec![1.0, 2.0]))];
        RecordBatch::try_new(schema.into(), arrays).unwrap()
    };
    for (name, told) in [("pandas.period", "a point in time is not a number"), ("h3", "stand for something else")] {
        for bytes in typed(&of(name)) {
            fs::write(&path, bytes).unwrap();
            let error = refused(&path, &named(&["month"]));
            assert!(error.contains(told) && error.contains(&format!("Int64 ({name})")), "{error}");
            assert!(refused(&path, &with("month", &["600", "601"])).contains(told));
            assert_eq!(read(&path, &named(&["x"])).unwrap().values, [1.0, 2.0]);
        }
    }
}

/// Texts of typed files are read as those of CSV are, with the site's sign before fractions.
#[test]
fn numbers_that_are_written_as_text_are_numbers_in_every_form() {
    let folder = Folder::new("texts");
    let texts = |values: &[&str]| -> Vec<ArrayRef> {
        vec![
            Arc::new(StringArray::from(values.to_vec())),
            Arc::new(arrow_array::LargeStringArray::from(values.to_vec())),
            Arc::new(arrow_array::StringViewArray::from(values.to_vec())),
            Arc::new(values.iter().copied().collect::<DictionaryArray<Int32Type>>()),
        ]
    };
    let numbers = ["12", " 1.50 ", "-3e2"];
    assert_eq!(same(&folder, &numbers, texts(&numbers), &named(&["c"])).unwrap(), [12.0, 1.5, -300.0]);
    let told = same(&folder, &["12", "NA", "word"], texts(&["12", "NA", "word"]), &named(&["c"])).unwrap_err();
    assert!(told.starts_with("1 with no value in \"c\""), "{told}");
    let rules = RowRules { decimal: Some(Decimal::Comma), ..RowRules::default() };
    let comma = TableSpec { rules: Arc::new(rules), ..named(&["c"]) };
    assert_eq!(same(&folder, &["\"1,5\"", "2"], texts(&["1,5", "2"]), &comma).unwrap(), [1.5, 2.0]);
}

#[test]
fn a_float_in_single_precision_has_the_name_of_its_fewest_digits() {
    let folder = Folder::new("singles");
    let singles: ArrayRef = Arc::new(arrow_array::Float32Array::from(vec![0.1, 2.0, f32::NAN]));
    let told = same(&folder, &["0.1", "2", "NaN"], vec![singles.clone()], &with("c", &["0.1", "2"])).unwrap_err();
    assert_eq!(told, "1 with no value in \"c\"");
    let singles = singles.slice(0, 2);
    let ones = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    assert_eq!(same(&folder, &["0.10", "2.0"], vec![singles], &with("c", &["0.1", "2"])).unwrap(), ones);
}

/// Bytes that are gone from the middle of an Arrow file, or came to it, are told: no number is read from elsewhere.
#[test]
fn bytes_missing_from_the_middle_of_arrow_are_told() {
    let folder = Folder::new("gaps");
    let path = folder.at("rows");
    let column = |by: f64| Arc::new(Float64Array::from_iter_values((0..40).map(|i| f64::from(i) * by))) as ArrayRef;
    let all = batch(&[("x", column(1.0)), ("y", column(-2.0)), ("z", column(0.5))]);
    let legacy = IpcWriteOptions::try_new(8, true, MetadataVersion::V4).unwrap();
    for (form, bytes) in [
        ("file", arrow(&all, IpcWriteOptions::default())),
        ("legacy", arrow(&all, legacy)),
        ("stream", arrow_stream_of(std::slice::from_ref(&all))),
    ] {
        fs::write(&path, &bytes).unwrap();
        let whole = read(&path, &named(&["x", "y", "z"])).unwrap_or_else(|e| panic!("{form}: {e}")).values;
        let mut read_on = 0;
        for at in (8..bytes.len() - 8).step_by(4) {
            for gone in [1, 4, 8, 16, 64, 320] {
                let mut cut = bytes.clone();
                cut.drain(at..(at + gone).min(bytes.len()));
                let more = [&bytes[..at], &bytes[at.saturating_sub(gone)..]].concat();
                for changed in [cut, more] {
                    fs::write(&path, &changed).unwrap();
                    if let Ok(table) = read(&path, &named(&["x", "y", "z"])) {
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

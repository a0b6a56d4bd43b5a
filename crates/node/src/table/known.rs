//! What a file is, by its first bytes: a form that is read, or one of those that people try, with what to do about it.

/// Bytes of a file that are looked at: those of a header of tar, and of a text some lines.
pub(super) const HEAD: usize = 512;

/// What the first bytes of a file say that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Text,
    Gzip,
    Zstd,
    Parquet,
    ArrowFile,
    ArrowStream,
    /// One that is told from text and not read.
    Other,
}

const EXPORT: &str = "export it as CSV, Parquet or Arrow";
const SHEET: &str = "save the sheet with the rows as \"CSV UTF-8\"";
const UNPACK: &str = "unpack it, or pack it with gzip";
const FILES: &str = "unpack it, and give the folder or the file with the rows";
const FRAME: &str =
    "write the data frame as CSV (in R: write.csv(rows, \"rows.csv\", row.names = FALSE)) or as Parquet";
const FLAT: &str = "write one line of text a row, under a header, as CSV";
/// What a build without the feature `columnar` says.
const BUILD: &str = "build veilsum with `--features columnar`, or export it as CSV";
const ZSTD: &str = "it is packed with zstd, which this build of veilsum does not read";
const STREAM: &str = "this is an Arrow stream, which this build of veilsum does not read";

use Form::Other;

/// Where the bytes stand by which a form is known, and which these are; what it is, and what to do if it is not read.
type Known = (usize, &'static [&'static [u8]], Form, &'static str, &'static str);

const FORMS: [Known; 41] = [
    (0, &[super::gzip::MAGIC], Form::Gzip, "it is packed twice", "unpack it once"),
    (0, &[b"\x28\xb5\x2f\xfd"], Form::Zstd, ZSTD, BUILD),
    (1, &[b"\x2a\x4d\x18"], Form::Zstd, ZSTD, BUILD),
    (0, &[b"PAR1", b"PARE"], Form::Parquet, "this is a Parquet file, which this build of veilsum does not read", BUILD),
    (0, &[b"ARROW1"], Form::ArrowFile, "this is an Arrow file, which this build of veilsum does not read", BUILD),
    (0, &[b"\xff\xff\xff\xff"], Form::ArrowStream, STREAM, BUILD),
    (0, &[b"FEA1"], Other, "this is a Feather file of version 1", "write it as Feather 2, Parquet or CSV"),
    (30, &[b"[Content_Types].xml", b"xl/", b"_rels/", b"docProps/"], Other, "this is an Excel workbook", SHEET),
    (30, &[b"mimetypeapplication/vnd.oasis"], Other, "this is a workbook of LibreOffice", SHEET),
    (0, &[b"PK\x03\x04"], Other, "this is a ZIP archive", FILES),
    (0, &[b"PK\x05\x06"], Other, "this is an empty ZIP archive", FILES),
    (0, &[b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x09\x08\x10\0\0\x06"], Other, "this is an old Excel workbook", SHEET),
    (0, &[b"BZh"], Other, "it is packed with bzip2", UNPACK),
    (0, &[b"\xfd7zXZ\0"], Other, "it is packed with xz", UNPACK),
    (0, &[b"\x5d\0\0"], Other, "it is packed with lzma", UNPACK),
    (0, &[b"\x04\x22\x4d\x18"], Other, "it is packed with lz4", UNPACK),
    (0, &[b"LZIP"], Other, "it is packed with lzip", UNPACK),
    (0, &[b"\x1f\x9d"], Other, "it is packed with compress (.Z)", UNPACK),
    (0, &[b"\xff\x06\0\0sNaPpY"], Other, "it is packed with snappy", UNPACK),
    (0, &[b"7z\xbc\xaf\x27\x1c"], Other, "this is a 7z archive", FILES),
    (0, &[b"Rar!\x1a\x07"], Other, "this is a RAR archive", FILES),
    (257, &[b"ustar"], Other, "this is a tar archive", FILES),
    (0, &[b"ORC"], Other, "this is an ORC file", EXPORT),
    (0, &[b"Obj\x01"], Other, "this is an Avro file", EXPORT),
    (0, &[b"SQLite format 3\0"], Other, "this is an SQLite database", EXPORT),
    (8, &[b"DUCK"], Other, "this is a DuckDB database", EXPORT),
    (0, &[b"\0\x01\0\0Standard "], Other, "this is an Access database", EXPORT),
    (0, &[b"PGDMP"], Other, "this is a dump of PostgreSQL", EXPORT),
    (0, &[b"\x89HDF\r\n\x1a\n"], Other, "this is an HDF5 file", EXPORT),
    (0, &[b"CDF\x01", b"CDF\x02"], Other, "this is a NetCDF file", EXPORT),
    (0, &[b"MATLAB 5.0"], Other, "this is a MATLAB file", EXPORT),
    (0, &[b"\x93NUMPY"], Other, "this is a NumPy array", EXPORT),
    (0, &[b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95"], Other, "this is a pickle of Python", EXPORT),
    (0, &[&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc2, 0xea, 0x81, 0x60]], Other, "this is a SAS data set", EXPORT),
    (0, &[b"HEADER RECORD*******"], Other, "this is a SAS transport file", EXPORT),
    (0, &[b"$FL2", b"$FL3"], Other, "this is an SPSS file", EXPORT),
    (
        0,
        &[b"<stata_dta>", b"\x73\x01\x01\0", b"\x73\x02\x01\0", b"\x72\x01\x01\0", b"\x72\x02\x01\0"],
        Other,
        "this is a Stata file",
        EXPORT,
    ),
    (0, &[b"X\n\0\0\0"], Other, "this is an RDS file of R", FRAME),
    (0, &[b"RDX", b"RDA"], Other, "this is a workspace of R", FRAME),
    (0, &[b"%PDF-"], Other, "this is a PDF document", "ask for the rows as CSV, Parquet or Arrow"),
    (0, &[b"{\\rtf"], Other, "this is a document of a word processor", SHEET),
];

/// How texts begin that are none of rows (in small letters, without blanks before), and what they are.
const TEXTS: [(&[&str], &str, &str); 10] = [
    (&["{\"", "{'", "{}", "[{", "[[", "[\"", "[]"], "this is JSON", FLAT),
    (
        &["<!doctype html", "<html"],
        "this is a web page",
        "download the rows themselves: the page may be one that asks for a login",
    ),
    (&["<table"], "this is a table of a web page", SHEET),
    (&["<?xml", "<!doctype"], "this is XML", FLAT),
    (&["@relation"], "this is an ARFF file of Weka", FLAT),
    (&["%%matrixmarket"], "this is a MatrixMarket file", FLAT),
    (&["--\n-- postgresql"], "this is a dump of PostgreSQL", EXPORT),
    (&["insert into", "create table"], "these are statements of SQL", EXPORT),
    (&["version https://git-lfs"], "this is a pointer of Git LFS and not the file", "fetch the file: git lfs pull"),
    (&["ascii spss port"], "this is a portable file of SPSS", EXPORT),
];

/// The form that begins with these bytes, what it is, and what to do where it is not read.
pub(super) fn told(head: &[u8]) -> (Form, &'static str, &'static str) {
    let zip = head.starts_with(b"PK");
    let there = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|head| head.starts_with(magic));
    let is_one = |at: usize, magics: &[&[u8]]| (at != 30 || zip) && magics.iter().any(|magic| there(at, magic));
    let known = FORMS.iter().find(|(at, magics, ..)| is_one(*at, magics));
    if let Some((_, _, form, what, next)) = known {
        return (*form, what, next);
    }
    if is_old_stream(head) {
        return (Form::ArrowStream, STREAM, BUILD);
    }
    let head = String::from_utf8_lossy(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)).to_lowercase();
    let head = head.trim_start();
    // Brackets may stand apart.
    let close: String = head.chars().filter(|c| !c.is_whitespace()).take(2).collect();
    let begins = |begin: &&str| match begin.len() {
        2 => *begin == close,
        // Remarks may stand before it.
        _ if begin.starts_with('@') => head.lines().any(|line| line.starts_with(begin)),
        _ => head.starts_with(begin),
    };
    let text = TEXTS.iter().find(|(all, ..)| all.iter().any(begins));
    text.map_or((Form::Text, "", ""), |(_, what, next)| (Form::Other, what, next))
}

/// Whether this begins as Arrow before 0.15 does: with the length of a message, whose table says where its own description is.
fn is_old_stream(head: &[u8]) -> bool {
    let number = |at: usize| Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?));
    let is = || {
        let (length, root) = (number(0)?, number(4)?);
        let table = number(4 + root as usize).filter(|back| (4..=root).contains(back))?;
        let sizes = number(4 + (root - table) as usize)?;
        let (own, of_table) = (sizes & 0xffff, sizes >> 16);
        Some(length < 1 << 24 && length > root && (8..=32).contains(&root) && (8..=20).contains(&own) && of_table < 64)
    };
    is().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every form is told by its bytes, wherever they stand, and every text by how it begins.
    #[test]
    fn every_form_is_told() {
        let magics = |(at, magics, form, what, next)| -> Vec<_> {
            let magics: &[&[u8]] = magics;
            magics.iter().map(|magic| (at, *magic, form, what, next)).collect()
        };
        for (at, magic, form, what, next) in FORMS.into_iter().flat_map(magics) {
            let mut head = vec![b'.'; at];
            if at == 30 {
                head[..4].copy_from_slice(b"PK\x03\x04");
            }
            head.extend_from_slice(magic);
            assert_eq!(told(&head), (form, what, next));
            assert_eq!(told(&head[1..]).0, Form::Text, "{what}");
        }
        for (all, what, next) in TEXTS {
            for begin in all {
                assert_eq!(told(begin.as_bytes()), (Form::Other, what, next));
                assert_eq!(told(format!("\u{feff} \n{}", begin.to_uppercase()).as_bytes()).1, what);
            }
        }
        assert_eq!(told(b"% Title\n%\n@RELATION iris\n").1, "this is an ARFF file of Weka");
        assert_eq!(told(b"[\n  {\n \"age\": 3}]").1, "this is JSON");
    }

    /// As pyarrow writes it for readers of before 0.15.
    #[test]
    fn a_stream_without_its_mark_is_told() {
        let head = b"\xa4\0\0\0\x10\0\0\0\0\0\n\0\x0c\0\x06\0\x05\0\x08\0\n\0\0\0\0\x01\x03\0\x0c\0\0\0";
        assert_eq!(told(head).0, Form::ArrowStream);
        let wide = |text: &str| text.chars().flat_map(|c| (c as u32).to_le_bytes()).collect::<Vec<u8>>();
        for text in ["a b\n1 2\n", "a\tb\n1\t2\n", "\t \n\r  a,b\n 1,2\n"] {
            assert_eq!((told(text.as_bytes()).0, told(&wide(text)).0), (Form::Text, Form::Text));
        }
        for end in 0..24 {
            assert_eq!(told(&head[..end]).0, Form::Text);
        }
    }

    /// What the feature `columnar` reads is known without it, and no text of rows is taken for anything else.
    #[test]
    fn what_another_build_reads_is_told_from_text() {
        let others = [&b"PAR1"[..], b"PARE", b"ARROW1\0\0", &[0xff; 8], &[0x28, 0xb5, 0x2f, 0xfd]];
        assert!(others.iter().all(|head| told(head).1.ends_with("does not read")));
        let rows = "x,y\n1,2||PAR|ARROW,1|BZ,h\n|[age],[bmi]\n1,2|{age},x\n|% fat,age\n|Obj,x\n|<5,b\n|insert,into\n|version,age\n|\
                    -- a,b\n|PK,x\n";
        assert!(rows.split('|').all(|head| told(head.as_bytes()).0 == Form::Text));
    }
}

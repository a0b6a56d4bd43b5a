//! Files as a source: one, all of a folder, all that a pattern names, or standard input.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    error::{Fault, TableError},
    input::open_one,
    limits::MAX_FILES,
    source::{RowReader, Table},
    wanted::{Wanted, list},
};

/// Opens a table: a file of any form that is known, a folder or a pattern of such files, or standard input. All files of one table have
/// the same columns.
///
/// # Errors
/// A [`TableError`] that names it.
pub fn open(name: &Path) -> Result<Box<dyn RowReader>, TableError> {
    let files = files_of(name)?;
    match &files[..] {
        [one] => open_one(one),
        _ => Ok(Box::new(Parts::new(files)?)),
    }
}

/// The files behind a name, in the order of their names.
///
/// # Errors
/// A [`TableError`] where there is none.
pub fn files_of(name: &Path) -> Result<Vec<PathBuf>, TableError> {
    let shown = name.display().to_string();
    let failed = |source| Fault::Open(source).of(&shown);
    let form = |what, next| Fault::said(what, next).of(&shown);
    let is_folder = name.is_dir();
    let found: Box<dyn Iterator<Item = io::Result<PathBuf>>> = if is_folder {
        Box::new(std::fs::read_dir(name).map_err(failed)?.map(|entry| Ok(entry?.path())))
    } else if is_pattern(name) {
        let wrong = "it is no pattern: * and ? stand for what may differ, and ** for folders";
        let found = glob::glob(&shown).map_err(|_| form(wrong, "correct the pattern"))?;
        Box::new(found.map(|path| path.map_err(io::Error::from)))
    } else {
        return Ok(vec![name.to_owned()]);
    };
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(failed)?;
        match (is_hidden(&path), path.is_dir()) {
            (true, _) => {}
            (false, true) if is_folder => {
                let what = "there are folders in it, whose names may be values of a column";
                return Err(form(what, "give a folder of files alone, or a pattern such as 'FOLDER/*/*.parquet'"));
            }
            (false, true) => {}
            (false, false) => files.push(path),
        }
        if files.len() > MAX_FILES {
            return Err(form("these are more than 65,536 files", "write the rows into fewer, larger files"));
        }
    }
    files.sort_unstable();
    if files.is_empty() {
        Err(form(
            "there is no file of rows here",
            "check the path; files whose names begin with \"_\" or \".\" are not looked at",
        ))
    } else {
        Ok(files)
    }
}

fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '[']) && !name.exists()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_none_or(|name| name.as_encoded_bytes().first().is_none_or(|c| matches!(c, b'.' | b'_')))
}

/// Whether `file`, which need not be there yet, is among the files behind the name of a folder or a pattern.
pub fn would_be_of(name: &Path, file: &Path) -> bool {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let is_among = match file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        _ if is_pattern(name) => glob::Pattern::new(&whole(name).to_string_lossy()).is_ok_and(|pattern| {
            let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::default() };
            pattern.matches_path_with(&whole(file), options)
        }),
        folder if name.is_dir() => {
            let [folder, name] = [folder.unwrap_or(Path::new(".")), name].map(Path::canonicalize);
            folder.is_ok_and(|folder| name.is_ok_and(|name| folder == name))
        }
        _ => false,
    };
    is_among && !is_hidden(file)
}

/// Several files, one after the other.
struct Parts {
    files: std::vec::IntoIter<PathBuf>,
    now: Box<dyn RowReader>,
    first: String,
    columns: Vec<String>,
}

impl Parts {
    fn new(files: Vec<PathBuf>) -> Result<Parts, TableError> {
        let mut files = files.into_iter();
        let now = open_one(&files.next().unwrap_or_default())?;
        Ok(Parts { first: now.name().to_owned(), columns: now.columns().to_vec(), files, now })
    }
}

impl RowReader for Parts {
    fn name(&self) -> &str {
        self.now.name()
    }

    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn doubt(&self) -> Option<TableError> {
        self.now.doubt()
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool, TableError> {
        table.several = true;
        if self.now.read(wanted, table)? {
            return Ok(true);
        }
        let Some(next) = self.files.next() else { return Ok(false) };
        self.now = open_one(&next)?;
        if self.now.columns() != self.columns {
            let what = format!("its columns are others than those of {}", self.first);
            let known = list(&self.columns);
            let next = format!("give every file of the source the same columns in the same order: {known}");
            return Err(Fault::said(what, next).of(self.now.name()));
        }
        Ok(true)
    }
}

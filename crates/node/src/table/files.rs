//! Files as a source: one, all of a folder, all that a pattern names, or standard input.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
};

use super::{
    About, Dialect, Fault, MAX_FILES, Result, RowReader, Table, Unusable, Wanted, input::open_one, print::Print,
    wanted::list,
};
use crate::cost::counted;

/// Opens a table: a file of any form that is known, a folder or a pattern of such files, or standard input. All files of one table have
/// the same columns.
///
/// # Errors
/// A [`TableError`](super::TableError) that names it.
pub fn open(name: &Path, dialect: Dialect) -> Result<Box<dyn RowReader>> {
    let (files, passed_over) = all_of(name)?;
    match &files[..] {
        [one] if passed_over.is_empty() => open_one(one, dialect),
        _ => Ok(Box::new(Parts::new(files, &passed_over, dialect)?)),
    }
}

/// The files behind a name, in the order of their names.
///
/// # Errors
/// A [`TableError`](super::TableError) where there is none.
pub fn files_of(name: &Path) -> Result<Vec<PathBuf>> {
    Ok(all_of(name)?.0)
}

/// The files behind a name, and those that are passed over for their names.
fn all_of(name: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let shown = name.display().to_string();
    let failed = |source| Fault::open(source).of(&shown);
    let form = |what, next| Fault::said(what, next).of(&shown);
    let is_folder = name.is_dir();
    let found: Box<dyn Iterator<Item = io::Result<PathBuf>>> = if is_folder {
        Box::new(std::fs::read_dir(name).map_err(failed)?.map(|entry| Ok(entry?.path())))
    } else if is_pattern(name) {
        let wrong = "it is no pattern: * and ? stand for what may differ, and ** for folders";
        let found = glob::glob(&shown).map_err(|_| form(wrong, "correct the pattern"))?;
        Box::new(found.map(|path| path.map_err(io::Error::from)))
    } else {
        return Ok((vec![name.to_owned()], Vec::new()));
    };
    let (mut files, mut passed_over) = (Vec::new(), Vec::new());
    for path in found {
        let path = path.map_err(failed)?;
        match (is_passed_over(&path), path.is_dir()) {
            (true, true) => {}
            (true, false) => passed_over.push(path),
            (false, true) if is_folder => {
                let what = "there are folders in it, whose names may be values of a column";
                return Err(form(what, "give a folder of files alone, or a pattern such as 'FOLDER/*/*.parquet'"));
            }
            (false, true) => {}
            (false, false) => files.push(path),
        }
        if files.len() + passed_over.len() > MAX_FILES {
            return Err(form("these are more than 65,536 files", "write the rows into fewer, larger files"));
        }
    }
    files.sort_unstable();
    passed_over.sort_unstable();
    if files.is_empty() {
        let next = "check the path; hidden files (\".\", \"_\"), unfinished ones (.tmp, .part), backups (~, .bak) and README are passed over";
        return Err(form("there is no file of rows here", next));
    }
    Ok((files, passed_over))
}

fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '[']) && !name.exists()
}

/// Whether a file is hidden, not finished, or a copy that an editor or a person left, by its name.
fn is_passed_over(path: &Path) -> bool {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy().to_lowercase()) else { return true };
    let mut ends = "~ # .bak .old .orig .swp .swo .tmp .temp .part .partial .crdownload .download".split(' ');
    let mut texts = "readme readme.txt readme.md readme.rst readme.html license license.txt license.md".split(' ');
    name.starts_with(['.', '_', '#', '~']) || ends.any(|end| name.ends_with(end)) || texts.any(|text| text == name)
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
    is_among && !is_passed_over(file)
}

/// Several files, one after the other.
struct Parts {
    files: std::vec::IntoIter<PathBuf>,
    dialect: Dialect,
    now: Box<dyn RowReader>,
    /// Of the present file and the columns of the first.
    about: About,
    first: String,
    /// Of the rows of the present file, and which file before had those.
    print: Print,
    known: HashMap<Print, String>,
}

impl Parts {
    fn new(files: Vec<PathBuf>, passed_over: &[PathBuf], dialect: Dialect) -> Result<Parts> {
        let mut files = files.into_iter();
        let now = open_one(&files.next().unwrap_or_default(), dialect)?;
        let passed_over = passed_over.iter().map(|path| path.display().to_string()).collect();
        let About { name, columns, numbered, .. } = now.about();
        let (first, columns, numbered) = (name.clone(), columns.clone(), *numbered);
        let about = About { name: first.clone(), columns, numbered, passed_over };
        Ok(Parts { files, dialect, now, about, first, print: Print::default(), known: HashMap::new() })
    }

    /// Whether the file that has ended is no copy of one before. Under noise its rows count all the same, and the operator is told.
    fn no_copy(&mut self, wanted: &Wanted, table: &mut Table) -> Result<()> {
        let (print, name) = (std::mem::take(&mut self.print), &self.about.name);
        let Some(known) = self.known.get(&print).filter(|_| print.rows > 0) else {
            self.known.insert(print, name.to_owned());
            return Ok(());
        };
        let what = format!("it holds the same {} as {known}", counted(print.rows as usize, "row"));
        if wanted.unusable != Unusable::Weightless {
            let next = "take one of the two files out of the source; if both are meant, put their rows into one file";
            return Err(Fault::said(what, next).of(name));
        }
        table.tally.noticed.push(format!("{name}: {what}, and both count"));
        Ok(())
    }
}

impl RowReader for Parts {
    fn about(&self) -> &About {
        &self.about
    }

    fn read(&mut self, wanted: &Wanted, table: &mut Table) -> Result<bool> {
        table.several |= self.files.len() > 0;
        let (before, of_persons) = (table.rows, table.of_persons);
        let more = self.now.read(wanted, table)?;
        let print = match &wanted.cut {
            // Which rows of persons count follows from all files together.
            Some(_) => table.of_persons.without(of_persons),
            None => {
                let labels = table.labels.as_ref().map(|labels| &labels[before..]);
                Print::of(&table.values[before * table.columns.len()..], table.columns.len(), labels)
            }
        };
        self.print = self.print.and(print);
        if more {
            return Ok(true);
        }
        self.no_copy(wanted, table)?;
        let Some(next) = self.files.next() else { return Ok(false) };
        self.now = open_one(&next, self.dialect)?;
        table.tally.files += 1;
        let About { name, columns, .. } = self.now.about();
        self.about.name.clone_from(name);
        if *columns != self.about.columns {
            let what = format!("its columns are others than those of {}, the first file of this source", self.first);
            let known = list(&self.about.columns);
            let next = format!(
                "give every file of the source the same columns in the same order, or take the one out that is none of rows; the first has {known}"
            );
            return Err(Fault::said(what, next).of(name));
        }
        Ok(true)
    }
}

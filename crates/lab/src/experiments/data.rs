//! The folder of data sets that are not part of the product.

use std::path::PathBuf;

use veilsum_cluster::Rows;

use super::{ExperimentError, Settings};

/// Where data sets are looked for unless said otherwise, seen from the current folder.
pub const DEFAULT_FOLDER: &str = "../shared/data";

/// A folder of CSV files.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

/// Rows with labels, as a data file holds them.
#[derive(Debug, Clone)]
pub(super) struct DataSet {
    pub(super) rows: Rows,
    /// Class of each row, counted from 0 in the order of appearance.
    pub(super) labels: Vec<usize>,
    /// What the classes are called.
    pub(super) names: Vec<String>,
}

impl Folder {
    /// The settings' folder.
    ///
    /// # Errors
    /// [`ExperimentError::Missing`] where there is none.
    pub fn new(settings: &Settings, wanted: &str) -> Result<Self, ExperimentError> {
        match &settings.data {
            Some(folder) if folder.is_dir() => Ok(Self(folder.clone())),
            _ => Err(ExperimentError::Missing(wanted.to_owned())),
        }
    }

    /// A CSV file with a header; the last column is a label.
    pub(super) fn labelled(&self, name: &str) -> Result<DataSet, ExperimentError> {
        let lines = self.lines(name)?;
        let (mut values, mut labels, mut names, mut columns) = (Vec::new(), Vec::new(), Vec::<String>::new(), 0);
        for line in lines.iter().skip(1) {
            let (label, attributes) = line.split_last().ok_or_else(|| bad(name, "an empty line"))?;
            columns = attributes.len();
            for cell in attributes {
                values.push(number(name, cell)?);
            }
            let known = names.iter().position(|known| known == label).unwrap_or_else(|| {
                names.push(label.clone());
                names.len() - 1
            });
            labels.push(known);
        }
        Ok(DataSet { rows: Rows::new(values, columns)?, labels, names })
    }

    /// A CSV file without header: a site's name, numbers, a label. Returns each site's rows and labels, in order of
    /// appearance.
    pub(super) fn by_site(&self, name: &str) -> Result<Vec<(Rows, Vec<usize>)>, ExperimentError> {
        let mut sites: Vec<(String, Vec<f64>, Vec<usize>)> = Vec::new();
        let mut columns = 0;
        for line in self.lines(name)? {
            let [site, attributes @ .., label] = line.as_slice() else { return Err(bad(name, "a short line")) };
            columns = attributes.len();
            let at = sites.iter().position(|known| known.0 == *site).unwrap_or_else(|| {
                sites.push((site.clone(), Vec::new(), Vec::new()));
                sites.len() - 1
            });
            for cell in attributes {
                sites[at].1.push(number(name, cell)?);
            }
            sites[at].2.push(number(name, label)? as usize);
        }
        sites.into_iter().map(|(_, values, labels)| Ok((Rows::new(values, columns)?, labels))).collect()
    }

    fn lines(&self, name: &str) -> Result<Vec<Vec<String>>, ExperimentError> {
        let text = std::fs::read_to_string(self.0.join(name)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ExperimentError::Missing(name.to_owned()),
            _ => bad(name, &error.to_string()),
        })?;
        let cells = |line: &str| line.split(',').map(|cell| cell.trim().to_owned()).collect();
        Ok(text.lines().filter(|line| !line.trim().is_empty()).map(cells).collect())
    }
}

fn number(file: &str, cell: &str) -> Result<f64, ExperimentError> {
    cell.parse().map_err(|_| bad(file, "a cell that is not a number"))
}

fn bad(file: &str, problem: &str) -> ExperimentError {
    ExperimentError::File(file.to_owned(), problem.to_owned())
}

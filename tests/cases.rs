//! Spellings of nothing that other people had trouble with, beside the checkout. Their other texts are in `crates/node/src/table/tests/cases`.

use std::{path::PathBuf, sync::Arc};

use veilsum_node::table::{self, RowRules, TableSpec};
use veilsum_testkit::{data::shared, program::Folder, with_data};

with_data!(every_spelling_of_nothing_can_be_marked,);

/// Each word of the list is missing by itself, or its error says how to mark it; marked, it is missing.
fn every_spelling_of_nothing_can_be_marked() {
    let folder = Folder::fresh();
    let words = std::fs::read_to_string(shared().join("cases/26-nan-spellings/words.txt")).expect("the list");
    let file = PathBuf::from(folder.path("rows.csv"));
    let read = |rules: RowRules| {
        let spec = TableSpec { rules: Arc::new(rules), ..TableSpec::default() };
        table::read(&file, &spec).map_err(|e| format!("{e}; {}", e.advice()))
    };
    for word in words.lines().chain(["", "-", "n/a", "#DIV/0!", "k.A.", "keine Angabe", "nan"]) {
        std::fs::write(&file, format!("age,bmi\n30,21.5\n40,{word}\n50,29.0\n")).expect("a file");
        let error = read(RowRules::default()).expect_err(word);
        assert!(error.contains("line 3, column \"bmi\""), "{word}: {error}");
        assert!(error.contains("value is missing") || error.contains("missing_marks"), "{word}: {error}");
        let columns = ["age", "bmi"].map(|name| (name.to_owned(), name.to_owned())).into();
        let marks = Some(word.to_owned()).filter(|word| !word.is_empty()).into_iter().collect();
        let missing = Some(veilsum_node::table::Missing::LeaveOut);
        let table = read(RowRules { columns, marks, missing, ..RowRules::default() });
        assert_eq!(table.unwrap_or_else(|e| panic!("{word}: {e}")).rows, 2, "{word}");
    }
}

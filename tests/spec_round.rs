//! "One round in numbers" of the specification says what the vectors say: the shares and the keys, and the sum of its
//! words. (That the streams are those of the keys is shown in `crates/proto`.)

use std::path::Path;

use serde_json::Value;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn section() -> String {
    let spec = read("protocol/spec.md");
    let (_, after) = spec.split_once("### 10.8 One round in numbers").expect("the section");
    after.split("\n## ").next().unwrap_or_default().to_owned()
}

fn session() -> Value {
    serde_json::from_str(&read("protocol/vectors/v4/session_3.json")).expect("JSON")
}

/// The cells of a table's row, without its outer bars.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The value in the line of the code block that begins with `label`.
fn block<'a>(section: &'a str, label: &str) -> &'a str {
    let line = section.lines().find(|l| l.split_whitespace().next() == Some(label));
    line.unwrap_or_else(|| panic!("no line {label}")).split_whitespace().nth(1).expect("a value")
}

#[test]
fn shares_seed_and_key_are_those_of_the_vector() {
    let (section, session) = (section(), session());
    for site in 0..3 {
        let frame = session["frames"][format!("0{} Unmask of site {site}", 25 + site)].as_str().unwrap();
        assert_eq!(block(&section, &format!("f({})", site + 1)), &frame[2 * 80..2 * 112], "site {site}");
    }
    let of = |list: &str, what: &[(&str, u64)]| -> Value {
        let mut items = session[list].as_array().unwrap().iter();
        items.find(|d| what.iter().all(|(k, v)| d[k].as_u64() == Some(*v))).expect("it is there").clone()
    };
    assert_eq!(of("decks", &[("site", 1), ("index", 0)])["seeds"][0], block(&section, "b"));
    assert_eq!(of("rounds", &[("site", 1), ("deck", 0), ("slot", 0)])["self_key"], block(&section, "s(1)"));
}

/// The first word of hexadecimal bytes from `offset` on.
fn word(hex: &str, offset: usize) -> u64 {
    u64::from_str_radix(&hex[2 * offset..2 * offset + 16], 16).expect("hexadecimal").swap_bytes()
}

/// "+ `00ff`" or "`00ff`" with its sign; nothing where the cell is empty.
fn signed(cell: &str) -> Option<u64> {
    let (minus, digits) = (cell.starts_with('−'), cell.split('`').nth(1)?);
    let value = u64::from_str_radix(digits, 16).expect("hexadecimal");
    Some(if minus { value.wrapping_neg() } else { value })
}

#[test]
fn the_words_add_up_to_the_total_of_the_vector() {
    let (section, session) = (section(), session());
    let (_, table) = section.split_once("| site | x |").expect("the words");
    let rows: Vec<Vec<&str>> = table.lines().skip(2).take(4).map(cells).collect();
    let (mut sums, mut pairs) = ([0u64; 3], [Some(0u64); 3]);
    for (site, row) in rows[..3].iter().enumerate() {
        assert_eq!((row.len(), row[0]), (7, site.to_string().as_str()), "{row:?}");
        let [x, own, y] = [1, 2, 6].map(|i| signed(row[i]).expect("a value"));
        let round = &session["rounds"][site];
        assert_eq!((&round["site"], &round["slot"], &round["deck"]), (&site.into(), &0.into(), &0.into()));
        assert_eq!(x, word(round["x"].as_str().unwrap(), 0), "x of site {site}");
        let frame = session["frames"][format!("0{} MaskedInput of site {site}", 21 + site)].as_str().unwrap();
        assert_eq!(y, word(frame, 72), "y of site {site}");
        let masks = (3..6).filter_map(|i| signed(row[i])).fold(own, u64::wrapping_add);
        assert_eq!(x.wrapping_add(masks), y, "line of site {site}");
        for (sum, v) in sums.iter_mut().zip([x, own, y]) {
            *sum = sum.wrapping_add(v);
        }
        for (pair, i) in pairs.iter_mut().zip(3..6) {
            *pair = pair.map(|p| p.wrapping_add(signed(row[i]).unwrap_or(0)));
        }
    }
    assert_eq!(pairs, [Some(0); 3], "pair masks cancel");
    assert_eq!([1, 2, 6].map(|i| signed(rows[3][i]).expect("a value")), sums, "the line of sums");
    assert_eq!(sums[2].wrapping_sub(sums[1]), sums[0]);
    let outputs = session["steps"].as_array().unwrap().iter().flat_map(|s| s["out"].as_array().unwrap());
    let total = outputs.filter_map(|o| o["total"]["words"].as_str()).next().expect("a total");
    assert_eq!(word(total, 0), sums[0]);
    assert!(section.contains(&format!("`{}`", &total[..16])), "the text names the total's first word");
}

//! Names, texts and numbers as SQL. Whatever comes from a plan passes through here; nothing of it is ever SQL itself.

/// Under noise a coordinate below this part of its column is 0, in rows and centres: differences are then 0, or so large that the server can
/// square weights of squares of them. No step of a sum is as small.
pub(crate) const NOTHING: f64 = 1e-40;

/// A name of the database, quoted.
///
/// # Errors
/// A sentence where no name is like this.
pub(crate) fn identifier(name: &str) -> Result<String, String> {
    if name.is_empty() || name.len() > 255 || name.contains('\0') {
        return Err(format!("{:?} is no name of a database", name.chars().take(40).collect::<String>()));
    }
    Ok(format!("\"{}\"", name.replace('"', "\"\"")))
}

/// `NAME` or `SCHEMA.NAME`, quoted.
///
/// # Errors
/// As [`identifier`].
pub(crate) fn relation(name: &str) -> Result<String, String> {
    let parts: Vec<String> = name.split('.').map(identifier).collect::<Result<_, _>>()?;
    match parts.len() {
        1 | 2 => Ok(parts.join(".")),
        _ => Err("the view has more than one dot in its name".to_owned()),
    }
}

/// The operator's own query, in brackets.
///
/// # Errors
/// A sentence where it is none.
pub(crate) fn subquery(query: &str) -> Result<String, String> {
    let query = query.trim().trim_end_matches(';');
    if query.is_empty() || query.contains('\0') {
        return Err("the query is empty".to_owned());
    }
    // On lines of its own: a comment at its end must not swallow the bracket.
    Ok(format!("(\n{query}\n)"))
}

/// A text.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// A double, to the last bit.
pub(crate) fn number(x: f64) -> String {
    match x {
        x if x.is_nan() => "'NaN'::float8".to_owned(),
        x if x == f64::INFINITY => "'Infinity'::float8".to_owned(),
        x if x == f64::NEG_INFINITY => "'-Infinity'::float8".to_owned(),
        x => format!("'{x:e}'::float8"),
    }
}

/// `items` with commas between.
pub(crate) fn list(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(", ")
}

/// `items` added from the left.
pub(crate) fn sum(items: impl IntoIterator<Item = String>) -> String {
    items.into_iter().collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_whatever_a_name_contains() {
        assert_eq!(identifier("age"), Ok("\"age\"".into()));
        assert_eq!(identifier("a\"; DROP TABLE t; --"), Ok("\"a\"\"; DROP TABLE t; --\"".into()));
        assert_eq!(relation("stats.rows"), Ok("\"stats\".\"rows\"".into()));
        assert!(relation("a.b.c").is_err() && identifier("").is_err() && identifier("a\0b").is_err());
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        assert_eq!(subquery("SELECT 1 -- x;"), Ok("(\nSELECT 1 -- x\n)".into()));
    }

    #[test]
    fn numbers_keep_every_bit() {
        for x in [0.1, -0.0, 1e-300, 5e-324, f64::MAX, 1.0 / 3.0] {
            let text = number(x);
            let read: f64 = text.trim_start_matches('\'').split('\'').next().unwrap().parse().unwrap();
            assert_eq!(read.to_bits(), x.to_bits(), "{text}");
        }
    }
}

//! The view: its columns and their types, how many rows it has, what is wrong with them, and what they are known by.

use std::collections::BTreeMap;

use tokio_postgres::types::{Kind, Type};
use veilsum_answerer::{
    Fingerprint, Hello, Refusal, RefusalCode,
    contract::tame,
    spelling::{NOTHING as NO_VALUE, Spellings, decomposed, normal},
};
use veilsum_cluster::{OutOfBox, Scaling};

use crate::{
    session::Session,
    text::{NOTHING, identifier, list, literal, number},
};

/// A relation with the plan's columns.
pub(crate) struct Source {
    relation: String,
    hello: Hello,
    /// Of every column of numbers its value as a double, of every column of names the place of its category, or -1.
    values: Vec<String>,
    /// Of every column of names its text, which may be missing.
    texts: Vec<String>,
    /// Whether there are rows that cannot be used; no answer has them.
    pub(crate) partly: bool,
}

/// What the rows are.
#[derive(Clone, PartialEq)]
pub(crate) struct Survey {
    pub(crate) rows: u64,
    pub(crate) bad: BTreeMap<String, u64>,
    pub(crate) fingerprint: Fingerprint,
}

impl Source {
    /// Looks at the columns of the relation.
    ///
    /// # Errors
    /// [`Refusal`] that names every column that is missing or is not what the plan wants.
    pub(crate) fn open(relation: &str, hello: &Hello, session: &mut Session) -> Result<Self, Refusal> {
        let statement = session.describe(&format!("SELECT * FROM {relation} AS r"))?;
        let mut wrong = Vec::new();
        let mut find = |name: &str, fits: fn(&Type) -> bool, wanted: &str| {
            let found: Vec<_> = statement.columns().iter().filter(|column| column.name() == name).collect();
            match found[..] {
                [] => {
                    let like = statement.columns().iter().find(|column| column.name().eq_ignore_ascii_case(name));
                    let like = like.map_or(String::new(), |column| format!(" (there is {:?})", column.name()));
                    wrong.push(format!("there is no column {name:?}{like}"));
                }
                [one] if !fits(one.type_()) => {
                    wrong.push(format!("the column {name:?} is of the type {}, and {wanted}", one.type_().name()));
                }
                [_] => {}
                _ => wrong.push(format!("the column {name:?} stands twice")),
            }
        };
        for column in &hello.columns {
            find(&column.name, is_number, "the plan wants a number");
        }
        for column in &hello.categorical {
            find(&column.column, is_name, "the plan wants a text with one of its categories");
        }
        if !wrong.is_empty() {
            let next = "let the administrator's view have the plan's columns by name, with casts where they are needed";
            return Err(Refusal::new(RefusalCode::Columns, tame(&wrong.join("; ")), next));
        }
        let name = |name: &str| {
            identifier(name)
                .map(|name| format!("r.{name}"))
                .map_err(|e| Refusal::new(RefusalCode::Columns, e, "rename it"))
        };
        let (mut values, mut texts) = (Vec::new(), Vec::new());
        for column in &hello.columns {
            let value = name(&column.name)?;
            let is = |of: Type| statement.columns().iter().any(|c| c.name() == column.name && *c.type_() == of);
            values.push(match hello.noise && is(Type::NUMERIC) {
                true => total(&value),
                false if is(Type::BOOL) => format!("{value}::int::float8"),
                false => format!("{value}::float8"),
            });
        }
        for column in &hello.categorical {
            // [NOI-8]: what is not listed is `other`, and what is not there is not.
            let other = column.other().filter(|_| hello.noise);
            let (value, text) = named(&name(&column.column)?, &column.categories, other);
            values.push(value);
            texts.push(text);
        }
        Ok(Self { relation: relation.to_owned(), hello: hello.clone(), values, texts, partly: false })
    }

    /// The statement of all rows as doubles, categories by their place.
    pub(crate) fn copy(&self) -> String {
        let values = list((0..self.values.len()).map(|at| format!("({})::float8", self.name(at))));
        format!("COPY (WITH {} SELECT {values} FROM v) TO STDOUT (FORMAT binary)", self.usable())
    }

    /// Whether the plan has noise.
    pub(crate) fn has_noise(&self) -> bool {
        self.hello.noise
    }

    /// What a value is called.
    fn name(&self, at: usize) -> String {
        at.checked_sub(self.hello.columns.len()).map_or_else(|| format!("x{at}"), |at| format!("c{at}"))
    }

    /// `x0, x1, …` and `c0, …` of every row, and texts `k0, …` where they are asked for, as a fenced part of a WITH.
    fn values(&self, texts: bool) -> String {
        let values = self.values.iter().enumerate().map(|(at, value)| format!("{value} AS {}", self.name(at)));
        let texts = self.texts.iter().filter(|_| texts).enumerate().map(|(at, text)| format!("{text} AS k{at}"));
        // Without the fence every use of a value computes it again, and the planner needs minutes for the whole.
        format!("v AS (SELECT {} FROM {} AS r OFFSET 0)", list(values.chain(texts)), self.relation)
    }

    /// The values of the rows that can be used.
    fn usable(&self) -> String {
        let all = self.values(false);
        if !self.partly {
            return all;
        }
        let refuse = self.hello.out_of_box == OutOfBox::Refuse;
        let numbers = self.hello.columns.iter().enumerate().map(|(at, column)| match refuse {
            true => format!("x{at} BETWEEN {} AND {}", number(column.lower), number(column.upper)),
            false => format!("x{at} > '-Infinity'::float8 AND x{at} < 'Infinity'::float8"),
        });
        let listed = (0..self.hello.categorical.len()).map(|at| format!("c{at} >= 0"));
        let direction = self.no_direction().map(|zeros| format!("NOT ({zeros})"));
        let fit = numbers.chain(listed).chain(direction).collect::<Vec<_>>().join(" AND ");
        format!("{}, v AS (SELECT * FROM a WHERE {fit} OFFSET 0)", all.replacen("v AS", "a AS", 1))
    }

    /// When a row is nothing but zeros in the plan's box, where that is no direction.
    fn no_direction(&self) -> Option<String> {
        let needed = self.hello.scaling == Scaling::Direction && self.hello.categorical.is_empty();
        let zero = |at: usize| format!("{} = 0", self.boxed(at));
        needed.then(|| (0..self.hello.columns.len()).map(zero).collect::<Vec<_>>().join(" AND "))
    }

    /// A number, moved into the plan's box where it clips.
    fn boxed(&self, at: usize) -> String {
        let (column, x) = (&self.hello.columns[at], format!("x{at}"));
        if self.hello.out_of_box == OutOfBox::Clip { clipped(&x, column.lower, column.upper) } else { x }
    }

    /// The coordinates of every row in working units ([QRY-1] of the specification), as parts of a WITH; the last is `w0`.
    pub(crate) fn working(&self) -> Vec<String> {
        let direction = self.hello.scaling == Scaling::Direction;
        let numbers = self.hello.columns.iter().enumerate().map(|(at, column)| {
            let (x, width) = (self.boxed(at), column.upper - column.lower);
            let (from, to) = match self.hello.scaling {
                Scaling::Box => {
                    let from = format!("({x} - {})", number(column.lower));
                    (from.clone(), format!("{from} / {}", number(width)))
                }
                Scaling::None | Scaling::Direction => (x.clone(), x),
            };
            match self.hello.noise {
                true => {
                    let (least, zero) = (number(NOTHING * width), number(0.0));
                    format!("CASE WHEN abs({from}) < {least} THEN {zero} ELSE {to} END AS x{at}")
                }
                false => format!("{to} AS x{at}"),
            }
        });
        let mut next = self.hello.columns.len();
        let mut indicators = Vec::new();
        for (at, column) in self.hello.categorical.iter().enumerate() {
            for place in 0..column.categories.len() {
                let one = number(column.one);
                indicators.push(format!("CASE WHEN c{at} = {place} THEN {one} ELSE {} END AS x{next}", number(0.0)));
                next += 1;
            }
        }
        let (first, last) = if direction { ("g0", "g2") } else { ("w0", "") };
        let mut parts =
            vec![self.usable(), format!("{first} AS (SELECT {} FROM v OFFSET 0)", list(numbers.chain(indicators)))];
        if direction {
            let xs = || (0..next).map(|at| format!("x{at}"));
            let largest = list(xs().map(|x| format!("abs({x})")));
            parts.push(format!("g1 AS (SELECT {}, GREATEST({largest}) AS most FROM g0 OFFSET 0)", list(xs())));
            parts.push(format!(
                "{last} AS (SELECT {} FROM g1 OFFSET 0)",
                list(xs().map(|x| format!("{x} / most AS {x}")))
            ));
            let length = crate::text::sum(xs().map(|x| format!("{x} * {x}")));
            parts.push(format!("g3 AS (SELECT {}, sqrt({length}) AS length FROM {last} OFFSET 0)", list(xs())));
            let unit = list(xs().map(|x| format!("{} AS {x}", clipped(&format!("({x} / length)"), -1.0, 1.0))));
            parts.push(format!("w0 AS (SELECT {unit} FROM g3 OFFSET 0)"));
        }
        parts
    }

    /// Counts rows, those that cannot be used by reason, and what the others are known by: their number, and sums of hashes, whose
    /// order does not count.
    pub(crate) fn survey(&self, session: &mut Session) -> Result<Survey, Refusal> {
        let (reasons, cases) = self.reasons();
        let numbers = self.hello.columns.len();
        let names: Vec<&str> = self.hello.names().collect();
        // The hash of a number gives its seed for a zero. With a seed of the column's own, which is never 0, a zero counts as any other
        // value does: it adds the seed. The server computes the seeds once.
        let hash = |at: usize, half: u8| {
            let seed = format!("(hashtextextended({} COLLATE \"C\", {half}) | 1)", literal(names[at]));
            match at.checked_sub(numbers) {
                None => format!("hashfloat8extended(x{at}, {seed})"),
                Some(at) => format!("hashtextextended(k{at} COLLATE \"C\", {seed})"),
            }
        };
        let all: Vec<usize> = (0..names.len()).collect();
        // In the order of their names: the plan's order, like that of categories, is no matter of the rows.
        let mut order = all.clone();
        order.sort_unstable_by_key(|at| names[*at]);
        let halves = [1, 2];
        let hashes = list(all.iter().flat_map(|at| halves.map(|half| format!("{} AS h{at}_{half}", hash(*at, half)))));
        // A row's hash begins with a seed that is not 0 and hashes the hash of each of its values: no value leaves it as it was.
        let chained = |half: u8| {
            order.iter().fold(half.to_string(), |seed, at| format!("hashint8extended(h{at}_{half}, {seed})"))
        };
        let own = all.iter().flat_map(|at| halves.map(|half| format!("h{at}_{half}")));
        let sums = list(own.chain(halves.map(chained)).map(|hash| format!("COALESCE(sum({hash}), 0)::text")));
        let sql = format!(
            "WITH {}, w AS (SELECT {hashes}, CASE {cases} ELSE -1 END AS why FROM v OFFSET 0) \
             SELECT why::int4, count(*)::int8, ARRAY[{sums}] FROM w GROUP BY why",
            self.values(true)
        );
        let nothing = "0".repeat(48);
        let fingerprint = Fingerprint { rows: nothing.clone(), columns: vec![nothing; all.len()] };
        let mut survey = Survey { rows: 0, bad: BTreeMap::new(), fingerprint };
        for row in session.rows(&sql)? {
            let (why, rows, sums): (i32, i64, Vec<String>) = (row.get(0), row.get(1), row.get(2));
            match usize::try_from(why) {
                Ok(why) => drop(survey.bad.insert(reasons[why].clone(), rows as u64)),
                Err(_) => {
                    survey.rows = rows as u64;
                    // Modulo 2^64.
                    let word = |sum: &String| sum.parse::<i128>().unwrap_or_default() as u64;
                    let of =
                        |halves: &[String]| halves.iter().map(|sum| format!("{:016x}", word(sum))).collect::<String>();
                    let mut hex = sums.chunks(2).map(|halves| format!("{rows:016x}{}", of(halves)));
                    survey.fingerprint.columns = hex.by_ref().take(all.len()).collect();
                    survey.fingerprint.rows = hex.next().unwrap_or_default();
                }
            }
        }
        Ok(survey)
    }

    /// Reasons for which a row cannot be used, with the conditions in their order.
    fn reasons(&self) -> (Vec<String>, String) {
        let mut found: Vec<(String, String)> = Vec::new();
        for (at, column) in self.hello.columns.iter().enumerate() {
            let (name, x) = (&column.name, format!("x{at}"));
            found.push((format!("no value in {name:?}"), format!("({x} IS NULL OR {x} = 'NaN'::float8)")));
            let finite = format!("NOT ({x} > '-Infinity'::float8 AND {x} < 'Infinity'::float8)");
            found.push((format!("not a finite number in {name:?}"), finite));
            if self.hello.out_of_box == OutOfBox::Refuse {
                let outside = format!("NOT ({x} BETWEEN {} AND {})", number(column.lower), number(column.upper));
                found.push((format!("a value outside the plan's public box in {name:?}"), outside));
            }
        }
        for (at, column) in self.hello.categorical.iter().enumerate() {
            found.push((format!("no value in {:?}", column.column), format!("k{at} IS NULL")));
            let unlisted = format!("a category that the plan does not list in {:?}", column.column);
            found.push((unlisted, format!("c{at} < 0")));
        }
        if let Some(zeros) = self.no_direction() {
            found.push(("nothing but zeros, and so no direction".to_owned(), zeros));
        }
        let cases: String = found.iter().enumerate().map(|(at, (_, when))| format!("WHEN {when} THEN {at} ")).collect();
        (found.into_iter().map(|(reason, _)| tame(&reason)).collect(), cases)
    }
}

/// A `numeric` as a double, also where it has more digits than doubles: no cell stops the statement ([NOI-8]).
fn total(x: &str) -> String {
    let (zero, most) = (number(0.0), "'Infinity'::float8");
    format!(
        "CASE WHEN abs({x}) < 1e-300 THEN {zero} WHEN {x} = 'NaN' THEN 'NaN'::float8 WHEN abs({x}) > 1e308 THEN {most} ELSE {x}::float8 END"
    )
}

/// `x`, moved into an interval.
pub(crate) fn clipped(x: &str, low: f64, high: f64) -> String {
    format!("LEAST(GREATEST({x}, {}), {})", number(low), number(high))
}

/// The place of the category that a column's cell is, or -1, and its text, or NULL where it has no value: as in a file of the same rows.
/// A cell that is no category as it stands is looked for as the same number, yes or no in the spelling of every form.
fn named(name: &str, categories: &[String], other: Option<usize>) -> (String, String) {
    let words = Spellings::new(categories.iter().map(String::as_str).zip(0usize..));
    let text = format!("btrim({name}::text, E' \\t\\n\\r\\f\\v')");
    let place = |(word, at): (&str, usize)| {
        let apart = decomposed(word);
        let apart = (apart != word).then(|| format!(" WHEN {} THEN {at}", literal(&apart)));
        format!(" WHEN {} THEN {at}{}", literal(word), apart.unwrap_or_default())
    };
    let cases: String = words.each().map(place).collect();
    let small = format!("lower({text})");
    let nothing = list(["", "nan"].iter().chain(&NO_VALUE).map(|word| literal(word)));
    let common = format!(
        "CASE WHEN {small} IN ('true', 'false') THEN {small} WHEN {text} ~ '^-?0[.]0*$' THEN '0' \
         WHEN {text} ~ '^-?(0|[1-9][0-9]*)[.][0-9]*$' THEN regexp_replace({text}, '[.]?0*$', '') ELSE {text} END"
    );
    let missing = format!("{text} IS NULL OR {small} IN ({nothing})");
    let other = other.map_or("-1".to_owned(), |at| at.to_string());
    let value = format!(
        "CASE {text}{cases} ELSE CASE WHEN {missing} THEN -1 ELSE CASE {common}{cases} ELSE {other} END END END"
    );
    let listed = categories.iter().map(|category| normal(category)).filter(|word| {
        let small = word.to_ascii_lowercase();
        small == "nan" || NO_VALUE.contains(&&*small)
    });
    let listed: Vec<String> = listed.map(|word| literal(&word)).collect();
    let kept = if listed.is_empty() { String::new() } else { format!(" AND {text} NOT IN ({})", list(listed)) };
    (value, format!("CASE WHEN {small} IN ({nothing}){kept} THEN NULL ELSE {name}::text END"))
}

fn is_number(of: &Type) -> bool {
    [Type::INT2, Type::INT4, Type::INT8, Type::FLOAT4, Type::FLOAT8, Type::NUMERIC, Type::BOOL].contains(of)
}

fn is_name(of: &Type) -> bool {
    let known =
        ["text", "varchar", "bpchar", "name", "char", "bool", "int2", "int4", "int8", "float4", "float8", "numeric"];
    known.contains(&of.name()) || matches!(of.kind(), Kind::Enum(_))
}

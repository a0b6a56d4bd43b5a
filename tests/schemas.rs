//! Whether a document fits a schema, by the words of JSON Schema that ours use; any other word is a panic.

use serde_json::Value;

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("the type {other}"),
    }
}

/// So many digits of a hash, which is all that our patterns ask for.
fn matches(pattern: &Value, text: &str) -> bool {
    let digits = pattern.as_str().and_then(|p| p.strip_prefix("^[0-9a-f]{")?.strip_suffix("}$"));
    text.len() == digits.and_then(|digits| digits.parse::<usize>().ok()).expect("a number of digits")
        && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// `at` is the place of the value in its document; `root` has the definitions.
pub(crate) fn fits(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Value::Object(words) = schema else {
        return (schema == &Value::Bool(true)).then_some(()).ok_or_else(|| format!("{at} is not in the schema"));
    };
    let list = |rule: &Value| rule.as_array().expect("a list").clone();
    for (word, rule) in words {
        let holds = match word.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let to = rule.as_str().expect("a place").trim_start_matches('#');
                fits(root, root.pointer(to).expect("a definition"), value, at)?;
                true
            }
            "const" => rule == value,
            "enum" => list(rule).contains(value),
            "type" if rule.is_array() => list(rule).iter().any(|kind| is(kind, value)),
            "type" => is(rule, value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().expect("a number")),
            "pattern" => value.as_str().is_none_or(|text| matches(rule, text)),
            "required" => {
                let has = |name: &Value| value.get(name.as_str().expect("a name")).is_some();
                !value.is_object() || list(rule).iter().all(has)
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    fits(root, rule, item, &format!("{at}/{i}"))?;
                }
                true
            }
            "properties" | "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    let known = words.get("properties").and_then(|known| known.get(name));
                    let own = if word == "properties" { known } else { known.is_none().then_some(rule) };
                    own.map_or(Ok(()), |rule| fits(root, rule, value, &format!("{at}/{name}")))?;
                }
                true
            }
            "oneOf" => list(rule).iter().filter(|form| fits(root, form, value, at).is_ok()).count() == 1,
            other => panic!("{other} is not read here"),
        };
        if !holds {
            return Err(format!("{at}: {word} is {rule}, and not {value}"));
        }
    }
    Ok(())
}

use super::*;

const NASTY: &str = "<script>alert(\"x\")</script>";

fn plots() -> Vec<Plot> {
    let line = |points: &[(f64, f64)]| (NASTY.to_owned(), points.to_vec());
    let value = |value: f64| Value { value, words: NASTY.to_owned() };
    let spot = |x: f64, ellipse, share| Spot { name: NASTY.into(), style: 9, at: (x, 1.0), ellipse, share };
    let cloud = |x: f64| Cloud { name: NASTY.into(), style: 1, faint: x > 1.0, points: vec![(x, x), (1.0, 2.0)] };
    vec![
        Plot::Lines(vec![line(&[(1.0, 2.0), (2.0, f64::INFINITY), (3.0, 5.0)]), line(&[(1.0, 0.0)])]),
        Plot::Lines(vec![]),
        Plot::Bars(vec![NASTY.into()], vec![(NASTY.into(), vec![0.3.into()]), ("z".into(), vec![])]),
        Plot::Bars(vec![], vec![]),
        Plot::Bars(vec![NASTY.into(), "b".into()], vec![(NASTY.into(), vec![value(f64::NAN), value(-1e300)])]),
        Plot::Histogram(vec![(0.0, 1.0, 4.0), (1.0, 1.0, 2.0), (2.0, f64::INFINITY, 1.0)]),
        Plot::Histogram(vec![]),
        Plot::Plane(
            vec![cloud(0.0), cloud(f64::NAN)],
            vec![
                spot(0.0, Some((1.0, 2.0)), None),
                spot(0.0, Some((f64::NAN, 2.0)), Some(0.2)),
                spot(f64::INFINITY, None, Some(f64::NAN)),
            ],
        ),
        Plot::Plane(vec![], vec![]),
        Plot::Parallel(
            vec![(NASTY.into(), (0.0, 0.0)), ("b".into(), (1.0, f64::NAN))],
            vec![(NASTY.into(), vec![Some(0.0), None, Some(3.0)]), ("y".into(), vec![Some(f64::NAN)])],
        ),
        Plot::Parallel(vec![], vec![]),
    ]
}

#[test]
fn text_is_escaped_and_numbers_are_finite() {
    for plot in plots() {
        for log in [false, true] {
            let notes = vec![(1.0, NASTY.to_owned()), (f64::NAN, "n".into())];
            let chart = Chart { notes, log, ..Chart::new(NASTY, NASTY, NASTY, plot.clone()) };
            let svg = chart.inline();
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("&lt;script&gt;"));
            assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<script"), "{svg}");
            assert!(!svg.replace("http://www.w3.org/2000/svg", "").contains("http"), "{svg}");
        }
    }
}

/// Words of a text, as far as they can be read off the SVG.
fn boxes(svg: &str) -> Vec<(f64, f64, f64, String)> {
    let number = |text: &str, name: &str| -> f64 {
        let (_, rest) = text.split_once(&format!("{name}=\"")).expect("an attribute");
        rest.split('"').next().and_then(|text| text.parse().ok()).expect("a number")
    };
    let of = |text: &str| {
        let (tag, rest) = text.split_once('>').expect("a tag");
        let words = rest.split('<').next().unwrap_or_default().replace("&lt;", "<").replace("&gt;", ">");
        let wide = 0.9 * width(&words, LETTER);
        let x = number(tag, "x");
        let left = match tag {
            tag if tag.contains("\"end\"") => x - wide,
            tag if tag.contains("\"middle\"") => x - wide / 2.0,
            _ => x,
        };
        (left, left + wide, number(tag, " y"), words)
    };
    svg.split("<text").skip(1).map(of).collect()
}

fn noted(notes: &[(f64, &str)], chart: Chart) -> Chart {
    Chart { notes: notes.iter().map(|(at, words)| (*at, (*words).to_owned())).collect(), ..chart }
}

/// The line of one note would else run through the words of the next.
#[test]
fn no_line_is_drawn_over_the_words_of_a_note() {
    let lines = Plot::Lines(vec![(String::new(), vec![(2.0, 1.0), (8.0, 2.0)])]);
    let bins = Plot::Histogram(vec![(0.0, 4.0, 1.0), (4.0, 9.0, 1.0)]);
    for plot in [lines, bins] {
        let svg = noted(&[(4.0, "smallest"), (5.0, "the result")], Chart::new("t", "x", "y", plot)).inline();
        let (last_line, words) = (svg.rfind("class=\"note\""), svg.find("smallest"));
        assert!(last_line.is_some() && last_line < words, "{svg}");
        assert_eq!(svg.matches("class=\"over\"").count(), 2, "{svg}");
    }
}

/// Whatever is shown, no word lies on another and none outside.
#[test]
fn words_do_not_touch() {
    let long = |i: usize| format!("a rather long name of a column, number {i}");
    let spots = (0..12).map(|i| Spot {
        name: i.to_string(),
        style: i,
        at: (f64::from(i as u32 % 4) / 30.0, f64::from(i as u32) / 90.0),
        ellipse: None,
        share: Some(0.1),
    });
    let notes = [(3.0, "smallest"), (3.0, "elbow"), (9.0, "chosen")];
    let bars = vec![(long(1), vec![Value::from(1e5); 9]), (long(2), vec![Value::from(0.1); 9])];
    let axes = (0..64).map(|i| (long(i), (-1e5, 123_456.0))).collect();
    let plots = [
        (&notes[..], Plot::Lines((0..9).map(|i| (long(i), vec![(2.0, 1.0 + i as f64), (9.0, 1e6)])).collect())),
        (&notes[..0], Plot::Bars((0..9).map(long).collect(), bars)),
        (&notes[..0], Plot::Plane(vec![], spots.collect())),
        (&notes[..0], Plot::Parallel(axes, (0..8).map(|i| (long(i), vec![Some(i as f64); 64])).collect())),
    ];
    for (notes, plot) in plots {
        let found = boxes(&noted(notes, Chart::new("t", "K", "index", plot)).inline());
        assert!(found.len() > 5);
        for (i, (left, right, y, words)) in found.iter().enumerate() {
            assert!(*left > -1.0 && *right < WIDE + 1.0, "{words} from {left} to {right}");
            for (a, b, other, more) in &found[..i] {
                let apart = (y - other).abs() >= 11.0 || right < a || b < left;
                assert!(apart, "{words:?} at {y} lies on {more:?} at {other}: {left} to {right}, {a} to {b}");
            }
        }
    }
}

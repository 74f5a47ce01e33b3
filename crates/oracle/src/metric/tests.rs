use super::*;
use proptest::prelude::*;

fn path() -> PathProperties {
    PathProperties {
        min_bandwidth: 1000.0,
        latency: 12.5,
        internal_hops: 3,
        as_number: 64500,
        as_distance: 2,
        weight: 7,
        congestion: 0.25,
        loss: 0.5,
    }
}

fn cost(expression: &str) -> f64 {
    Metric::compile("test", expression)
        .unwrap_or_else(|e| panic!("{expression}: {e}"))
        .cost(&path())
}

#[test]
fn the_default_is_that_of_the_report() {
    assert_eq!(cost(DEFAULT_COST), 8.0 * 2.0 + 0.5 * 3.0 + 10.0 / 1000.0);
    let metric = Metric::compile("default", DEFAULT_COST).unwrap();
    assert_eq!(metric.cost(&PathProperties::HERE), 0.0);
    assert_eq!((metric.name.as_str(), metric.expression()), ("default", DEFAULT_COST));
}

#[test]
fn every_property_has_its_name() {
    let values = [2.0, 64500.0, 0.25, 3.0, 12.5, 0.5, 1000.0, 7.0];
    for (name, value) in VARIABLES.into_iter().zip(values) {
        assert_eq!(cost(name), value, "{name}");
        let metric = Metric::compile("test", name).unwrap();
        assert_eq!(metric.uses_as_number(), name == "as_number");
    }
    // All at once: each value goes to its variable.
    let sum: String = VARIABLES
        .iter()
        .rev()
        .enumerate()
        .fold(String::from("0"), |sum, (i, name)| format!("{sum} + {} * {name}", i + 1));
    let expected: f64 = values.iter().rev().zip(1..).map(|(v, i)| v * f64::from(i)).sum();
    assert_eq!(cost(&sum), expected);
}

#[test]
fn operators_bind_as_they_do_on_paper() {
    for (expression, value) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("2 * 3 / 4", 1.5),
        ("2 / 3 * 3", 2.0),
        ("7 - 2 - 1", 4.0),
        ("7 % 4 * 2", 6.0),
        ("-2 ^ 2", -4.0),
        ("2 ^ -1", 0.5),
        ("2 ^ 3 ^ 2", 512.0),
        ("--2 - -+1", 3.0),
        ("1e3 + 2.5E-1 + .5 + 3.", 1003.75),
        ("0.0000000000000000000000000001 == 1e-28", 1.0),
        ("1 + 1 < 3", 1.0),
        ("(latency > 50) * 100 + 1", 1.0),
        ("(2 <= 2) + (3 >= 4) + (1 == 1) + (1 != 1)", 2.0),
        ("min(1, max(2, 3), 4) + max(min_bandwidth, 1, 5)", 1001.0),
        ("max(sqrt(16), abs(-3)) * min(2, 3)", 8.0),
        ("log(exp(2)) + log2(8) + log10(100)", 7.0),
        ("floor(1.5) + ceil(1.5) + round(2.5)", 6.0),
    ] {
        assert_eq!(cost(expression), value, "{expression}");
    }
}

#[test]
fn what_is_not_a_number_is_said_to_be_so() {
    assert!(cost("sqrt(-1)").is_nan());
    assert!(cost("0 / 0").is_nan());
    assert_eq!(cost("1 / 0"), f64::INFINITY);
}

#[test]
fn a_wrong_expression_is_refused_with_its_offset() {
    for (expression, offset, problem) in [
        ("", 0, "the expression ends where a value is needed"),
        ("1 +", 3, "the expression ends where a value is needed"),
        ("1 + * 2", 4, "a value is needed here, not '*'"),
        ("8 * as_distance + hops", 18, "\"hops\" is not known; properties of a path are as_dist"),
        ("8 as_distance", 2, "an operator is missing before this"),
        ("latency(2)", 7, "an operator is missing before this"),
        ("(1 + 2", 0, "this parenthesis is not closed"),
        ("1 + 2)", 5, "there is no opening parenthesis for this one"),
        ("(1, 2)", 2, "a comma is only allowed between the arguments of min and max"),
        ("sqrt(1, 2)", 6, "a comma is only allowed between the arguments of min and max"),
        ("sqrt 2", 5, "sqrt needs its argument in parentheses"),
        ("min(1)", 5, "min needs at least two arguments, separated by commas"),
        ("min(1 2)", 6, "an operator or a closing parenthesis is needed here"),
        ("1 < 2 < 3", 6, "comparisons are < <= > >= == != and cannot be chained: use parentheses"),
        ("1 = 2", 2, "comparisons are < <= > >= == != and cannot be chained: use parentheses"),
        ("1.2.3", 3, "an operator is missing before this"),
        (". + 1", 0, "this is not a number"),
        ("1e999", 0, "this number is too large"),
        ("latency + ä", 10, "a value is needed here, not 'ä'"),
        ("latency & 1", 8, "'&' is not allowed here"),
        ("{latency}", 0, "a value is needed here, not '{'"),
    ] {
        let error = Metric::compile("test", expression).unwrap_err();
        assert_eq!(error.offset, offset, "{expression}: {error}");
        assert!(error.problem.starts_with(problem), "{expression}: {error}");
    }
    let deep = "(".repeat(100_000);
    assert_eq!(Metric::compile("test", &deep).unwrap_err().offset, 64);
    let error = Metric::compile("test", "1 +").unwrap_err();
    assert_eq!(error.to_string(), "at byte 3: the expression ends where a value is needed");
}

/// An expression as text, and its value by a method independent of the compiler.
fn expressions() -> impl Strategy<Value = (String, f64)> {
    let leaf = prop_oneof![
        (0u32..1000).prop_map(|n| (format!("{}", f64::from(n) / 8.0), f64::from(n) / 8.0)),
        Just(("latency".to_owned(), 12.5)),
        Just(("min_bandwidth".to_owned(), 1000.0)),
        Just(("as_distance".to_owned(), 2.0)),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        (inner.clone(), inner, 0usize..12).prop_map(|((a, x), (b, y), operation)| {
            let (text, value) = match operation {
                0 => (format!("{a} + {b}"), x + y),
                1 => (format!("{a} - {b}"), x - y),
                2 => (format!("{a} * {b}"), x * y),
                3 => (format!("{a} / {b}"), x / y),
                4 => (format!("min({a}, {b})"), x.min(y)),
                5 => (format!("max ( {a} ,{b} )"), x.max(y)),
                6 => (format!("-{a}"), -x),
                7 => (format!("abs({a})+0*({b}>1e9)"), x.abs()),
                8 => (format!("sqrt({a})"), x.sqrt()),
                9 => (format!("{a} < {b}"), if x < y { 1.0 } else { 0.0 }),
                10 => (format!("{a} ^ ({b} == 1)"), x.powf(if y == 1.0 { 1.0 } else { 0.0 })),
                _ => (format!("max(1, {a}, 2)"), 1f64.max(x).max(2.0)),
            };
            (format!("({text})"), value)
        })
    })
}

proptest! {
    #[test]
    fn a_compiled_expression_has_the_value_of_its_parts((text, value) in expressions()) {
        let found = cost(&text);
        prop_assert!(found == value || found.is_nan() && value.is_nan(), "{text}: {found}, not {value}");
    }

    #[test]
    fn any_text_is_compiled_or_refused(text in "[a-e0-9.+*/^(),<=> _latencymin-]{0,40}") {
        if let Err(error) = Metric::compile("test", &text) {
            prop_assert!(error.offset <= text.len());
            prop_assert!(!error.problem.contains("cannot be compiled"), "{text}: {error}");
        }
    }
}

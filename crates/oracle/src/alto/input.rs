//! Reading the body of a request: the members that the RFCs name, with the right error for each case
//! in which they can be wrong (RFC 7285, 8.5.2). Members that they do not name are ignored
//! (8.3.7).

use super::error::Problem;
use serde_json::{Map, Value};

/// A JSON object and the path to it in the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a> {
    members: &'a Map<String, Value>,
    path: &'a str,
}

/// Parses a body that must be an object.
pub(super) fn parse(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Problem::syntax("the body must be a JSON object")),
        Err(error) => Err(Problem::syntax(error.to_string())),
    }
}

impl<'a> Object<'a> {
    /// The whole body.
    pub(super) fn body(members: &'a Map<String, Value>) -> Self {
        Self { members, path: "" }
    }

    /// The path of a member.
    fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// A member that may be missing.
    pub(super) fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name)
    }

    /// An object in it, which may be missing.
    pub(super) fn object(&self, name: &'a str) -> Result<Option<Self>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(Self { members, path: name })),
            Some(_) => Err(Problem::invalid_type(self.path(name))),
        }
    }

    /// An array, which may be missing.
    pub(super) fn array(&self, name: &str) -> Result<Option<&'a [Value]>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(values)) => Ok(Some(values)),
            Some(_) => Err(Problem::invalid_type(self.path(name))),
        }
    }

    /// An array of strings, each taken by `parse`, each result once, in the order of their first
    /// appearance. A string that `parse` refuses is an invalid value, as is an element of another
    /// type (8.5.2).
    pub(super) fn list<T: PartialEq + Clone + std::hash::Hash + Eq>(
        &self,
        name: &str,
        parse: impl Fn(&'a str) -> Option<T>,
    ) -> Result<Option<Vec<(T, &'a str)>>, Problem> {
        let Some(values) = self.array(name)? else { return Ok(None) };
        let mut seen = std::collections::HashSet::with_capacity(values.len());
        let mut list = Vec::with_capacity(values.len());
        for value in values {
            let invalid = || Problem::invalid_value(self.path(name), value);
            let text = value.as_str().ok_or_else(invalid)?;
            let parsed = parse(text).ok_or_else(invalid)?;
            if seen.insert(parsed.clone()) {
                list.push((parsed, text));
            }
        }
        Ok(Some(list))
    }

    /// The same of a member that must be there.
    pub(super) fn required_list<T: PartialEq + Clone + std::hash::Hash + Eq>(
        &self,
        name: &str,
        parse: impl Fn(&'a str) -> Option<T>,
    ) -> Result<Vec<(T, &'a str)>, Problem> {
        self.list(name, parse)?.ok_or_else(|| Problem::missing(self.path(name)))
    }

    /// The same of a member that must have an element.
    pub(super) fn filled_list<T: PartialEq + Clone + std::hash::Hash + Eq>(
        &self,
        name: &str,
        parse: impl Fn(&'a str) -> Option<T>,
    ) -> Result<Vec<(T, &'a str)>, Problem> {
        let list = self.required_list(name, parse)?;
        if list.is_empty() {
            return Err(Problem::invalid_value(self.path(name), &Value::Array(Vec::new())));
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alto::error::Code;
    use serde_json::json;

    #[test]
    fn a_body_that_is_no_object_is_a_syntax_error_with_a_place() {
        for body in ["", "{", "[]", "7", "{\"a\":1}x", "\u{feff}{}", "{'a':1}"] {
            let problem = parse(body.as_bytes()).expect_err(body);
            assert_eq!(problem.code, Code::Syntax, "{body}");
            assert!(problem.syntax.is_some());
        }
        assert!(parse(b"\xff").is_err());
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
    }

    #[test]
    fn lists_have_each_element_once() {
        let value = json!({ "pids": ["a", "b", "a"], "odd": ["a", 7], "none": [], "text": "a" });
        let members = value.as_object().expect("an object");
        let object = Object::body(members);
        let list = |name| object.list(name, |text| Some(text.to_owned()));
        let names: Vec<_> = list("pids").expect("good").into_iter().flatten().collect();
        assert_eq!(names, [("a".to_owned(), "a"), ("b".to_owned(), "b")]);
        assert_eq!(list("missing"), Ok(None));
        assert_eq!(list("text"), Err(Problem::invalid_type("text")));
        // An element of the wrong type is an invalid value, and its value is a string.
        assert_eq!(list("odd"), Err(Problem::invalid_value("odd", &json!(7))));
        assert_eq!(
            object.filled_list("none", |text| Some(text.to_owned())),
            Err(Problem::invalid_value("none", &json!([])))
        );
        assert_eq!(
            object.required_list("missing", |text| Some(text.to_owned())),
            Err(Problem::missing("missing"))
        );
    }
}

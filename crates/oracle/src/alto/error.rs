//! What is wrong with a request: ALTO's error codes with `field` and `value` (RFC 7285, 8.5.2).

use serde_json::{Map, Value, json};

/// An error code of RFC 7285, table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The body is no JSON, or no object.
    Syntax,
    /// A required field is missing.
    MissingField,
    /// A field's value has the wrong type.
    InvalidFieldType,
    /// A field's value is wrong.
    InvalidFieldValue,
}

impl Code {
    /// The code as it appears in the reply.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "E_SYNTAX",
            Self::MissingField => "E_MISSING_FIELD",
            Self::InvalidFieldType => "E_INVALID_FIELD_TYPE",
            Self::InvalidFieldValue => "E_INVALID_FIELD_VALUE",
        }
    }
}

/// What is wrong with the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The kind of error.
    pub code: Code,
    /// Full path of the field, such as `cost-type/cost-metric`; of an array's element, the array.
    pub field: Option<String>,
    /// The wrong value as a string.
    pub value: Option<String>,
    /// Where and why the body could not be parsed, for developers.
    pub syntax: Option<String>,
}

impl Problem {
    /// The body cannot be parsed; the sentence names the position.
    pub fn syntax(sentence: impl Into<String>) -> Self {
        Self { code: Code::Syntax, field: None, value: None, syntax: Some(sentence.into()) }
    }

    /// This field is missing.
    pub fn missing(field: impl Into<String>) -> Self {
        Self { code: Code::MissingField, field: Some(field.into()), value: None, syntax: None }
    }

    /// This field's value has the wrong type.
    pub fn invalid_type(field: impl Into<String>) -> Self {
        Self { code: Code::InvalidFieldType, field: Some(field.into()), value: None, syntax: None }
    }

    /// This field has this wrong value. A string stands as it is, all else as its JSON text.
    pub fn invalid_value(field: impl Into<String>, value: &Value) -> Self {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self {
            code: Code::InvalidFieldValue,
            field: Some(field.into()),
            value: Some(value),
            syntax: None,
        }
    }

    /// The error resource (8.5.2).
    pub fn to_json(&self) -> Value {
        let mut meta = Map::new();
        meta.insert("code".to_owned(), self.code.as_str().into());
        for (name, text) in
            [("field", &self.field), ("value", &self.value), ("syntax-error", &self.syntax)]
        {
            if let Some(text) = text {
                meta.insert(name.to_owned(), text.as_str().into());
            }
        }
        json!({ "meta": meta })
    }
}

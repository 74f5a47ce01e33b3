//! The schema of a section, and that of a whole file (JSON Schema draft 7, which editors know).

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    json_schema,
    transform::{RecursiveTransform, transform_subschemas},
};
use serde_json::{Map, Value};
use std::any::{TypeId, type_name};

/// A section of the configuration: its name, and the type that it is read as.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its name, such as `echo`.
    pub name: &'static str,
    schema: fn(&mut SchemaGenerator) -> Schema,
    id: TypeId,
}

impl Section {
    /// The section of this name, read by [`Reader::section`](crate::file::Reader::section) as `T`.
    pub fn new<T: JsonSchema + 'static>(name: &'static str) -> Self {
        Self { name, schema: SchemaGenerator::subschema_for::<T>, id: TypeId::of::<T>() }
    }

    /// Whether it is the section of this name and type.
    fn is(&self, read: &Read) -> bool {
        self.name == read.name && self.id == read.id
    }
}

/// A section that was read.
#[derive(Debug)]
pub(crate) struct Read {
    name: String,
    id: TypeId,
    type_name: &'static str,
}

impl Read {
    pub(crate) fn new<T: 'static>(name: &str) -> Self {
        Self { name: name.to_owned(), id: TypeId::of::<T>(), type_name: type_name::<T>() }
    }
}

/// Panics when a job reads a section that is not among its own: the schema would lack it.
pub(crate) fn check_reads(job: &str, own: &[Section], reads: &[Read]) {
    for read in reads {
        assert!(
            own.iter().any(|section| section.is(read)),
            "the job {job} reads the section {} as {}: put Section::new::<{}>({:?}) into Job::sections",
            read.name,
            read.type_name,
            read.type_name,
            read.name,
        );
    }
}

/// The schema of a file with these sections.
pub(crate) fn file(sections: impl Iterator<Item = Section>) -> Schema {
    let mut generator = SchemaSettings::draft07()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator();
    let properties: Map<String, Value> = sections
        .map(|section| (section.name.to_owned(), (section.schema)(&mut generator).into()))
        .collect();
    let mut schema = json_schema!({
        "$schema": generator.settings().meta_schema,
        "title": "nigh.toml",
        "description": "Configuration of nigh",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    for transform in generator.transforms_mut() {
        transform.transform(&mut schema);
    }
    for transform in [without_null, exact_duration, describe_type] {
        transform_subschemas(&mut RecursiveTransform(transform), &mut schema);
    }
    schema
}

/// A default duration in its largest exact unit.
fn exact_duration(schema: &mut Schema) {
    if schema.get("title").is_none_or(|title| title != "duration") {
        return;
    }
    let default = schema.get("default").and_then(Value::as_str);
    if let Some(Ok(default)) = default.map(config::duration) {
        schema.insert("default".into(), config::exact_duration(default).into());
    }
}

/// The key `type` of a table that has different keys for each type.
fn describe_type(schema: &mut Schema) {
    if schema.get("const").is_some() && schema.get("description").is_none() {
        let text = "The type of this table; it determines the other keys.";
        schema.insert("description".into(), text.into());
    }
}

/// TOML has no null: what is optional is omitted.
fn without_null(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = types.as_slice() {
            let name = name.clone();
            object.insert("type".into(), name);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Array(variants)) = object.get_mut("anyOf") {
        variants.retain(|variant| variant["type"] != "null");
        if let [Value::Object(only)] = variants.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            // The field's own description takes precedence.
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Table {
        /// The first.
        text: Option<String>,
        /// The second.
        word: Option<Word>,
        /// The third.
        #[schemars(with = "Option<config::schema::Duration>")]
        time: Option<std::time::Duration>,
        /// The fourth.
        #[schemars(with = "config::schema::Duration", default = "months")]
        long: String,
        /// The last.
        number: u8,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    #[schemars(rename_all = "lowercase")]
    enum Word {
        /// This.
        This,
        /// That.
        That,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    #[schemars(tag = "type", rename_all = "lowercase")]
    enum Kinds {
        /// One kind.
        One { key: u8 },
    }

    fn months() -> String {
        "5months 27days 19h 12m".into()
    }

    #[test]
    fn a_file_is_its_sections_without_null() {
        let schema = file([Section::new::<Table>("table")].into_iter());
        let table = &schema.get("properties").unwrap()["table"];
        assert_eq!(table["required"], serde_json::json!(["number"]));
        assert_eq!(table["properties"]["text"]["type"], "string");
        assert_eq!(table["properties"]["time"]["title"], "duration");
        assert_eq!(table["properties"]["time"]["description"], "The third.");
        assert_eq!(table["properties"]["long"]["default"], "180days");
        assert_eq!(table["properties"]["word"]["description"], "The second.");
        assert_eq!(table["properties"]["word"]["oneOf"][1]["const"], "that");
        assert!(!schema.to_value().to_string().contains("null"));
    }

    #[test]
    fn the_type_of_a_table_is_described() {
        let schema = file([Section::new::<Kinds>("kinds")].into_iter());
        let kind = &schema.get("properties").unwrap()["kinds"]["oneOf"][0]["properties"]["type"];
        assert_eq!(kind["const"], "one");
        assert_eq!(kind["description"], "The type of this table; it determines the other keys.");
    }

    #[test]
    #[should_panic = "the job toy reads the section toy.more as u16"]
    fn a_section_that_is_read_without_a_schema_is_a_mistake() {
        let own = [Section::new::<Table>("toy"), Section::new::<u8>("toy.more")];
        check_reads("toy", &own, &[Read::new::<Table>("toy")]);
        check_reads("toy", &own, &[Read::new::<u16>("toy.more")]);
    }
}

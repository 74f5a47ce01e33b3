//! What a request asks for behind the question mark.

use axum::extract::Query;
use std::fmt::Display;
use std::str::FromStr;

/// Why a request is not understood.
pub(super) type Mistake = String;

/// The parameters of a request; each is taken out by who understands it.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// Reads them.
    pub(super) fn read(uri: &axum::http::Uri) -> Result<Self, Mistake> {
        match Query::try_from_uri(uri) {
            Ok(Query(pairs)) => Ok(Self(pairs)),
            Err(error) => Err(format!("the query cannot be parsed: {error}")),
        }
    }

    /// All values of one parameter.
    pub(super) fn all(&mut self, key: &str) -> Vec<String> {
        let taken = self.0.extract_if(.., |(name, _)| name == key);
        taken.map(|(_, value)| value).collect()
    }

    /// The value of a parameter that may be given once.
    pub(super) fn one<T: FromStr<Err: Display>>(
        &mut self,
        key: &str,
    ) -> Result<Option<T>, Mistake> {
        match &self.all(key)[..] {
            [] => Ok(None),
            [value] => match value.parse() {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(format!("{key}={value} is invalid: {error}")),
            },
            _ => Err(format!("{key} is given more than once")),
        }
    }

    /// The value of a parameter that must be given.
    pub(super) fn needed(&mut self, key: &str) -> Result<String, Mistake> {
        self.one(key)?.ok_or_else(|| format!("{key}=... is missing"))
    }

    /// Refuses what nobody understood.
    pub(super) fn end(self) -> Result<(), Mistake> {
        match self.0.first() {
            None => Ok(()),
            Some((key, _)) => Err(format!("there is no parameter {key} here")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Parameters {
        Parameters::read(&format!("/x?{query}").parse().unwrap()).unwrap()
    }

    #[test]
    fn parameters_are_taken_one_by_one_and_the_rest_is_refused() {
        let mut query = read("limit=7&with=a+b&with=c%26d&from=as1%3Eas2");
        assert_eq!(query.one("limit"), Ok(Some(7)));
        assert_eq!(query.one::<usize>("limit"), Ok(None));
        assert_eq!(query.all("with"), ["a b", "c&d"]);
        assert_eq!(query.needed("from"), Ok("as1>as2".to_owned()));
        query.end().unwrap();
        assert_eq!(read("limt=7").end(), Err("there is no parameter limt here".to_owned()));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for (query, sentence) in [
            ("limit=x", "limit=x is invalid: invalid digit found in string"),
            ("limit=-1", "limit=-1 is invalid: invalid digit found in string"),
            ("limit=1&limit=2", "limit is given more than once"),
        ] {
            assert_eq!(read(query).one::<usize>("limit"), Err(sentence.to_owned()));
        }
        assert_eq!(read("").needed("from"), Err("from=... is missing".to_owned()));
    }
}

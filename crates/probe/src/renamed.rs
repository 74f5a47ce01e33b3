//! Options of the command line that have another name now.

/// The value of an option that has another name now: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renamed {}

/// Refuses an option that has another name now.
pub(crate) fn renamed(
    to: &'static str,
) -> impl Fn(&str) -> Result<Renamed, String> + Clone + Send + Sync + 'static {
    move |_| Err(format!("this option is called {to} now"))
}

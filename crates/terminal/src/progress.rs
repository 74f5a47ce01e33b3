//! Progress on standard error, drawn if that is a terminal.

pub use indicatif::ProgressBar;
use indicatif::ProgressStyle;

/// The bytes that were read of a file, with room for a message; `of` all where that is known.
pub fn bytes(of: Option<u64>) -> ProgressBar {
    let (bar, template) = match of {
        Some(of) => (
            ProgressBar::new(of),
            "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta} {msg}",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} {binary_bytes_per_sec} {msg}"),
    };
    styled(bar, template)
}

/// A bar that is drawn by a template, which is a constant that parses.
pub fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

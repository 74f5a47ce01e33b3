//! Any text as a link's settings, as words and as a TOML table: what is read is written, and reads back.

use lab::{LinkSettings, SettingsChange};

/// Runs the target on an input.
pub fn run(data: &[u8]) {
    let text = data.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match text.parse::<SettingsChange>() {
        Ok(change) => {
            assert_eq!(change.to_string().parse(), Ok(change));
            let mut settings = LinkSettings::default();
            change.apply(&mut settings);
            assert_eq!(settings.to_string().parse(), Ok(settings));
        }
        Err(error) => assert!(!error.allowed.is_empty()),
    }
    if let Ok(settings) = toml::from_str::<LinkSettings>(text) {
        let written = toml::to_string(&settings).expect("settings are a table");
        assert_eq!(toml::from_str(&written), Ok(settings));
    }
}

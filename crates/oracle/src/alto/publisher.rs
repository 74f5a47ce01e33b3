//! From ranking tables to what the server serves.

use super::{
    catalogue::Catalogue,
    config::AltoConfig,
    maps::{MapSettings, Maps},
    server::Snapshots,
    updates::follow::Answers,
};
use crate::tables::Tables;
use std::sync::Arc;
use tokio::sync::watch;

/// Makes the maps of each new snapshot known to a server.
pub struct Publisher {
    settings: Arc<MapSettings>,
    base: String,
    last: Option<Arc<Maps>>,
    snapshots: watch::Sender<Option<Arc<dyn Answers>>>,
}

impl Publisher {
    /// A publisher of a configuration, and what a server takes. Without a configured key PIDs have other names
    /// than before the start.
    pub fn new(config: AltoConfig) -> (Publisher, Snapshots) {
        let (snapshots, served) = watch::channel(None);
        let (settings, base) = settings(config, None);
        (Publisher { settings, base, last: None, snapshots }, served)
    }

    /// Changes the configuration, for snapshots from now on. PIDs keep their names unless a key is configured.
    pub fn configure(&mut self, config: AltoConfig) {
        (self.settings, self.base) = settings(config, Some(self.settings.name_key));
    }

    /// Publishes the maps of new tables. Cheap: they are calculated when they are asked for.
    pub fn publish(&mut self, tables: Arc<Tables>) {
        let maps = Arc::new(Maps::new(tables, self.settings.clone(), self.last.as_deref()));
        self.last = Some(maps.clone());
        let catalogue: Arc<dyn Answers> = Arc::new(Catalogue::new(maps, self.base.clone()));
        self.snapshots.send_replace(Some(catalogue));
    }
}

fn settings(config: AltoConfig, key: Option<[u8; 16]>) -> (Arc<MapSettings>, String) {
    let name_key =
        config.name_key.as_ref().map(|key| *key.bytes()).or(key).unwrap_or_else(rand::random);
    let base = config.base();
    (Arc::new(MapSettings { config, name_key }), base)
}

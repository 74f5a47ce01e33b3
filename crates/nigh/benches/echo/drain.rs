//! What a drain loses: pings from an enterprise of the ten-AS internet while its near site is drained
//! and the other one takes over.

use crate::NIGH;
use serde_json::json;
use std::{error::Error, path::Path, time::Duration};
use testbed::{Figures, Pings, dinr, pings, wait_until};

/// Between two pings. Debian's ping as root sends as often.
const INTERVAL: Duration = Duration::from_millis(2);

/// Measures it.
pub(crate) fn measure(figures: &mut Figures) -> Result<(), Box<dyn Error>> {
    println!("\nA drain in the ten-AS internet, with a ping every {} ms", INTERVAL.as_millis());
    let internet = dinr::Internet::build()?;
    let near = dinr::Site::start(&internet, 12, Path::new(NIGH))?;
    let far = dinr::Site::start(&internet, 13, Path::new(NIGH))?;
    for site in [&near, &far] {
        site.ask(&json!({"do": "limit", "rate": 0}))?;
    }
    let limit = Duration::from_secs(60);
    near.wait_for_path(&internet, 20, "50.0.0.0/8", "4 12", limit)?;
    far.wait_for_path(&internet, 21, "50.0.0.0/8", "5 13", limit)?;
    let pings = Pings::start(internet.host(20), dinr::SERVICE4, INTERVAL)?;
    wait_until("pings", limit, || pings.replies().len() > 500)?;
    near.drain()?;
    let so_far = pings.replies().len();
    wait_until("pings after the drain", limit, || pings.replies().len() > so_far + 500)?;
    let replies = pings.finish()?;
    figures.add("pings answered through a drain", replies.len() as f64, "pings", None);
    figures.add("pings lost through a drain", pings::lost(&replies) as f64, "pings", Some("0"));
    Ok(())
}

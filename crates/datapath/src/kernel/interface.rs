//! What an interface can do, asked without touching it.

use crate::{
    attach::AttachMode,
    ethtool::{self, Timestamps},
};
use libbpf_rs::libbpf_sys::{self, bpf_xdp_query_opts};
use serde::Serialize;

// linux/netdev.h, enum netdev_xdp_act.
const BASIC: u64 = 1;
const XSK_ZEROCOPY: u64 = 8;

/// An interface of the calling thread's network namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Whether there is one of this name.
    pub exists: bool,
    /// Its driver, if that says its name.
    pub driver: Option<String>,
    /// Where XDP programs run; none if the driver does not say, which drivers do from Linux 6.3 on.
    pub xdp: Option<AttachMode>,
    /// The number of the XDP program that is there.
    pub xdp_program: Option<u32>,
    /// Whether AF_XDP works without copying; none if the driver does not say.
    pub zero_copy: Option<bool>,
    /// Times of received packets; none if the driver does not say.
    pub receive_timestamps: Option<Timestamps>,
    /// Times of sent packets; none if the driver does not say.
    pub send_timestamps: Option<Timestamps>,
}

impl Interface {
    /// Asks about the interface of a name.
    pub fn of(name: &str) -> Self {
        let index = nix::net::if_::if_nametoindex(name).ok();
        let xdp = index.and_then(xdp);
        let features = xdp.as_ref().and_then(|xdp| xdp.features);
        let times = ethtool::timestamps(name).ok();
        Self {
            name: name.to_owned(),
            exists: index.is_some(),
            driver: ethtool::driver(name).ok(),
            xdp: features.map(|features| match features & BASIC {
                0 => AttachMode::Generic,
                _ => AttachMode::Native,
            }),
            xdp_program: xdp.and_then(|xdp| xdp.program),
            zero_copy: features.map(|features| features & XSK_ZEROCOPY != 0),
            receive_timestamps: times.map(|(received, _)| received),
            send_timestamps: times.map(|(_, sent)| sent),
        }
    }

    /// All but the loopback interface.
    pub fn all() -> Vec<Self> {
        let all = nix::net::if_::if_nameindex();
        let all = all.iter().flatten().filter_map(|interface| interface.name().to_str().ok());
        all.filter(|name| *name != "lo").map(Self::of).collect()
    }
}

struct Xdp {
    program: Option<u32>,
    features: Option<u64>,
}

/// By rtnetlink and, from Linux 6.3 on, the generic netlink family netdev.
fn xdp(index: u32) -> Option<Xdp> {
    // libbpf writes this field if there is such a family.
    const UNTOUCHED: u32 = u32::MAX;
    let mut options = bpf_xdp_query_opts {
        sz: size_of::<bpf_xdp_query_opts>() as libbpf_sys::size_t,
        xdp_zc_max_segs: UNTOUCHED,
        ..Default::default()
    };
    // SAFETY: the options live through the call and say their own size; the rest are integers.
    let result = unsafe { libbpf_sys::bpf_xdp_query(index as i32, 0, &raw mut options) };
    (result == 0).then(|| Xdp {
        program: [options.drv_prog_id, options.skb_prog_id, options.hw_prog_id, options.prog_id]
            .into_iter()
            .find(|program| *program != 0),
        features: (options.xdp_zc_max_segs != UNTOUCHED).then_some(options.feature_flags),
    })
}

//! What the lab can do on this kernel.

use datapath::{
    capabilities::{self, Capability},
    kernel,
};
use job::{Ability, Interface, ability};

/// What it can do here: hosts in namespaces need TAP devices, interfaces of the machine AF_XDP.
pub fn ability(interfaces: &[Interface]) -> Ability {
    let missing = capabilities::missing(&[Capability::CAP_SYS_ADMIN, Capability::CAP_NET_ADMIN]);
    if !missing.is_empty() {
        let missing = capabilities::list(&missing);
        return Ability::unknown(format!("without {missing} it does not run: run as root"));
    }
    if !kernel::tap() {
        return Ability::fails(
            "there are no TAP devices for hosts: `modprobe tun`, or give the container /dev/net/tun",
        );
    }
    if !kernel::af_xdp() {
        return Ability::other_way(
            "hosts of the lab by TAP; no interfaces of this machine, as there is no AF_XDP (CONFIG_XDP_SOCKETS)",
        );
    }
    match ability::names(interfaces, |it| it.zero_copy == Some(true)).as_str() {
        "" => Ability::works("hosts by TAP; interfaces by AF_XDP, each frame copied"),
        names => Ability::works(format!(
            "hosts by TAP; interfaces by AF_XDP, without copying on {names}"
        )),
    }
}

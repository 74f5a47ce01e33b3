//! What is asked of the kernel over rtnetlink in the calling thread's network namespace.

use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::{
    Handle, LinkUnspec, RouteMessageBuilder,
    packet_route::{
        address::{AddressAttribute, AddressFlags, AddressHeaderFlags},
        link::LinkAttribute,
    },
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};
use wire::Mac;

/// The kernel refused something.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// There is no socket to the kernel.
    #[error("rtnetlink: {0}")]
    Socket(#[from] io::Error),
    /// The answer is an error.
    #[error("{what}: {source}")]
    Refused {
        /// What was asked for.
        what: String,
        /// What the kernel answered.
        source: Box<rtnetlink::Error>,
    },
}

fn refused(what: impl Into<String>) -> impl FnOnce(rtnetlink::Error) -> NetlinkError {
    move |source| NetlinkError::Refused { what: what.into(), source: source.into() }
}

/// Asks the kernel in a runtime of its own.
fn ask<R>(
    question: impl AsyncFnOnce(Handle) -> Result<R, NetlinkError>,
) -> Result<R, NetlinkError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        question(handle).await
    })
}

/// Puts `lo` up and gives it an alias.
pub(super) fn prepare_loopback(alias: &str) -> Result<(), NetlinkError> {
    ask(async |handle| {
        let message = LinkUnspec::new_with_name("lo").up().alias(alias);
        handle.link().set(message.build()).execute().await.map_err(refused("putting lo up"))
    })
}

/// The alias of `lo`, if it has one.
pub(super) fn loopback_alias() -> Result<Option<String>, NetlinkError> {
    ask(async |handle| {
        let request = handle.link().get().match_name("lo".to_owned());
        let link = request.execute().try_next().await.map_err(refused("asking for lo"))?;
        Ok(link.and_then(|link| {
            link.attributes.into_iter().find_map(|attribute| match attribute {
                LinkAttribute::IfAlias(alias) => Some(alias),
                _ => None,
            })
        }))
    })
}

/// What an interface of a host is to be.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    /// Its name.
    pub(crate) name: String,
    /// Its Ethernet address.
    pub(crate) mac: [u8; 6],
    /// Longest IP packet in bytes.
    pub(crate) mtu: u32,
    /// Its addresses, each with the length of the prefix on the link.
    pub(crate) addresses: Vec<IpNet>,
    /// Frames that may wait until the lab takes them.
    pub(crate) queue: u32,
}

/// Where a host sends what is not on its link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gateways {
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Ipv6Addr>,
}

impl Interface {
    /// Gives the interface, which is there, its addresses, puts it up and sets the default routes.
    pub(crate) fn configure(&self, gateways: Gateways) -> Result<(), NetlinkError> {
        ask(async |handle| {
            let index = self.put_up(&handle).await?;
            add_routes(&handle, index, gateways).await
        })
    }

    /// Gives the interface, which is there, its addresses, sets it up and sets the Ethernet address
    /// of a neighbour.
    pub(crate) fn configure_with_neighbour(
        &self,
        neighbour: IpAddr,
        mac: Mac,
    ) -> Result<(), NetlinkError> {
        ask(async |handle| {
            let index = self.put_up(&handle).await?;
            let request = handle.neighbours().add(index, neighbour).link_layer_address(&mac.0);
            request.execute().await.map_err(refused(format!("adding neighbour {neighbour}")))
        })
    }

    /// Gives it its addresses and puts it up; returns its number.
    async fn put_up(&self, handle: &Handle) -> Result<u32, NetlinkError> {
        let request = handle.link().get().match_name(self.name.clone());
        let link = request.execute().try_next().await;
        let link = link.map_err(refused(format!("asking for {}", self.name)))?;
        let index = link.map_or(0, |link| link.header.index);
        let message = LinkUnspec::new_with_index(index)
            .address(self.mac.to_vec())
            .mtu(self.mtu)
            .txqueuelen(self.queue);
        let result = handle.link().set(message.build()).execute().await;
        result.map_err(refused(format!("setting up {}", self.name)))?;
        let message = LinkUnspec::new_with_index(index).up();
        let result = handle.link().set(message.build()).execute().await;
        result.map_err(refused(format!("putting {} up", self.name)))?;
        for address in &self.addresses {
            add_address(handle, index, *address).await?;
        }
        Ok(index)
    }
}

async fn add_address(handle: &Handle, index: u32, address: IpNet) -> Result<(), NetlinkError> {
    let mut request = handle.address().add(index, address.addr(), address.prefix_len());
    if address.addr().is_ipv6() {
        // It serves at once: there is nobody on the link who could have it too.
        let message = request.message_mut();
        message.header.flags |= AddressHeaderFlags::Nodad;
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    }
    request.execute().await.map_err(refused(format!("adding address {address}")))
}

async fn add_routes(handle: &Handle, index: u32, gateways: Gateways) -> Result<(), NetlinkError> {
    if let Some(gateway) = gateways.v4 {
        let route = RouteMessageBuilder::<Ipv4Addr>::new().output_interface(index).onlink();
        let result = handle.route().add(route.gateway(gateway).build()).execute().await;
        result.map_err(refused(format!("adding a default route by {gateway}")))?;
    }
    if let Some(gateway) = gateways.v6 {
        let route = RouteMessageBuilder::<Ipv6Addr>::new().output_interface(index).onlink();
        let result = handle.route().add(route.gateway(gateway).build()).execute().await;
        result.map_err(refused(format!("adding a default route by {gateway}")))?;
    }
    Ok(())
}

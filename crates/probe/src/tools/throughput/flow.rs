//! How both ends part, whatever the data went over: the receiver reports what it has, the sender answers
//! with what its kernel reported.

use super::{
    Ends, Error,
    connection::Control,
    control::{Message, Received},
    within,
};
use crate::record::Moment;

/// Waits for what the receiver has, while data are sent.
pub(super) async fn received(ends: &Ends<'_>, control: &mut Control) -> Result<Received, Error> {
    match control.hear(ends.context).await? {
        Message::Received { received } => Ok(received),
        other => Err(Error::unexpected(&other, ends.context)),
    }
}

/// The receiver's end of it.
pub(super) async fn part(
    ends: &Ends<'_>,
    control: &mut Control,
    received: &Received,
) -> Result<Vec<Moment>, Error> {
    control.send(&Message::Received { received: received.clone() }).await?;
    match within(control.hear(ends.context)).await? {
        Message::Samples { moments } => Ok(moments),
        other => Err(Error::unexpected(&other, ends.context)),
    }
}
